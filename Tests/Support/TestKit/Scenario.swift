/// A script of changes to files and the expected reactions of the program.
///
/// CONTRIBUTING.md documents the commands.
package struct Scenario: Sendable {
    package struct Line: Sendable {
        package var number: Int
        package var words: [[UInt8]]

        /// The word at the index as a string; empty if there is none.
        package func text(_ index: Int) -> String {
            index < words.count ? String(decoding: words[index], as: UTF8.self) : ""
        }
    }

    package var name: String
    /// The rules file.
    package var rules: String
    package var lines: [Line]

    /// Parses a script.
    package init(name: String, text: String) {
        self.name = name
        var rules = "rules:\n"
        var lines: [Line] = []
        var raw: [String]?
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            if raw != nil {
                if line == "end" {
                    rules = raw?.joined(separator: "\n") ?? ""
                    raw = nil
                } else {
                    raw?.append(String(line))
                }
                continue
            }
            let words = Self.words(of: line)
            guard let first = words.first.map({ String(decoding: $0, as: UTF8.self) }), !first.hasPrefix("#") else {
                continue
            }
            switch first {
            case "yaml": raw = []
            case "rule": rules += Self.rule(String(line.drop { $0 != " " }))
            default: lines.append(Line(number: index + 1, words: words))
            }
        }
        self.rules = rules
        self.lines = lines
    }

    /// Converts a line such as `path in/*, events created moved, settle 200ms, action log` to YAML.
    private static func rule(_ text: String) -> String {
        var keys = ""
        for (index, part) in text.split(separator: ",").enumerated() {
            let words = part.split(separator: " ")
            guard let key = words.first else { continue }
            var value = words.dropFirst().joined(separator: " ")
            switch key {
            case "events", "types", "exclude":
                value = "[" + words.dropFirst().map { "'\($0)'" }.joined(separator: ", ") + "]"
            case "action" where value == "log":
                value = "{ use: log, with: { message: '${event} ${size}' } }"
            case "path": value = "'\(value)'"
            default: break
            }
            keys += "\(index == 0 ? "  - " : "    ")\(key): \(value)\n"
        }
        return keys
    }

    /// Splits a line at spaces.
    ///
    /// A quoted `"…"` is one word and may contain `\n`, `\"`, `\\` and `\xNN`.
    static func words(of line: some StringProtocol) -> [[UInt8]] {
        var words: [[UInt8]] = []
        var word: [UInt8]?
        var isQuoted = false
        var bytes = Array(line.utf8)[...]
        while let byte = bytes.popFirst() {
            switch byte {
            case UInt8(ascii: "\""):
                isQuoted.toggle()
                word = word ?? []
            case UInt8(ascii: " ") where !isQuoted:
                if let finished = word { words.append(finished) }
                word = nil
            case UInt8(ascii: "\\") where isQuoted:
                switch bytes.popFirst() {
                case UInt8(ascii: "n"): word?.append(10)
                case UInt8(ascii: "x"):
                    word?.append(UInt8(String(decoding: bytes.prefix(2), as: UTF8.self), radix: 16) ?? 0)
                    bytes = bytes.dropFirst(2)
                case let other?: word?.append(other)
                case nil: break
                }
            default:
                word = (word ?? []) + [byte]
            }
        }
        if let word { words.append(word) }
        return words
    }
}

import Globbing
import Rules
import System

/// Finds parts of a valid glob that hardly match what was meant.
private enum GlobMistake {
    // MARK: - Paths of other systems

    static func foreignPath(_ text: String) -> TextProblem? {
        let bytes = Array(text.utf8)
        let whole = bytes.indices
        if let end = text.firstRange(of: "://") {
            let scheme = text[..<end.lowerBound]
            guard !scheme.isEmpty, scheme.utf8.allSatisfy({ $0.isAlphanumeric }) else { return nil }
            let help =
                scheme.lowercased() == "file"
                ? "write '\(escaped(String(text[end.upperBound...]), limit: 80))'"
                : "mount the file system, and write a path below the mount point"
            return TextProblem("\(quoted(text)) is a URL, not a path", at: whole, help: help)
        }
        if bytes.count > 2, bytes[0].isAlphanumeric, bytes[1] == UInt8(ascii: ":"), "\\/".utf8.contains(bytes[2]) {
            return TextProblem(
                "\(quoted(text)) is a path of Windows", at: whole, help: "write a path of this machine, with '/'")
        }
        if text.hasPrefix(#"\\"#) {
            return TextProblem(
                "\(quoted(text)) is a network path of Windows", at: whole,
                help: "mount the share, and write a path below the mount point")
        }
        guard
            let offset = bytes.indices.dropLast(2).first(where: {
                // A backslash before a single letter may belong to a regular expression.
                bytes[$0] == backslash && bytes[$0 + 1].isAlphanumeric && bytes[$0 + 2].isAlphanumeric
            })
        else { return nil }
        return TextProblem(
            #"'\' in \#(quoted(text)) only makes the next character literal"#, at: offset..<(offset + 1),
            help: "separate directories by '/'")
    }

    // MARK: - Other kinds of patterns

    /// Returns the first mistake in a glob.
    static func first(in text: String, key: String, exists: (String) -> Bool) -> TextProblem? {
        negation(text, key: key) ?? parentheses(text) ?? spaceInBraces(text) ?? severalGlobs(text, exists: exists)
    }

    private static func negation(_ text: String, key: String) -> TextProblem? {
        guard text.hasPrefix("!"), text.utf8.count > 1 else { return nil }
        let help =
            key == "path"
            ? "write '\(escaped(String(text.dropFirst()), limit: 80))' under 'exclude'"
            : "there are no exceptions: narrow the other globs"
        return TextProblem("'!' at the start of \(quoted(text)) is literal", at: 0..<1, help: help)
    }

    private static func parentheses(_ text: String) -> TextProblem? {
        let bytes = Array(text.utf8)
        guard let open = bytes.firstIndex(of: UInt8(ascii: "(")),
            let close = bytes[open...].firstIndex(of: UInt8(ascii: ")")),
            bytes[open..<close].contains(UInt8(ascii: "|"))
        else { return nil }
        let list = String(decoding: bytes[(open + 1)..<close], as: UTF8.self)
        return TextProblem(
            "'(\(escaped(list, limit: 80)))' is literal: globs have alternatives in braces", at: open..<(close + 1),
            help: "write '{\(escaped(list.replacing("|", with: ","), limit: 80))}'")
    }

    // MARK: - Lists

    private static func spaceInBraces(_ text: String) -> TextProblem? {
        let bytes = Array(text.utf8)
        for (index, isInBraces) in unescapedPlaces(in: bytes) where isInBraces && bytes[index] == UInt8(ascii: " ") {
            let isFirst = "{,".utf8.contains(bytes[index - 1])
            let isLast = index + 1 < bytes.count && ",}".utf8.contains(bytes[index + 1])
            guard isFirst || isLast else { continue }
            return TextProblem(
                "the space \(isFirst ? "at the start" : "at the end") of an alternative is part of the name",
                at: index..<(index + 1),
                help: "remove it, or write '[ ]' for a space")
        }
        return nil
    }

    /// Finds several globs in one string.
    private static func severalGlobs(_ text: String, exists: (String) -> Bool) -> TextProblem? {
        let bytes = Array(text.utf8)
        var globs: [String] = []
        var start = 0
        for (index, isInBraces) in unescapedPlaces(in: bytes)
        where !isInBraces && ",;| ".utf8.contains(bytes[index]) {
            let rest = bytes[(index + 1)...].drop { $0 == UInt8(ascii: " ") }
            guard index > start, !rest.isEmpty else { continue }
            let isComma = bytes[index] == UInt8(ascii: ",") && bytes[index + 1] == UInt8(ascii: " ")
            var isGlob = ["*.", "**", "~/", "/", "./"].contains { rest.starts(with: $0.utf8) }
            if bytes[index] == UInt8(ascii: " ") {
                // As in '*.jpg *.png', but not in 'scan *.pdf'.
                let name = PathBytes(bytes[start..<index]).lastComponent
                isGlob = isGlob && name.contains(UInt8(ascii: "*")) && name.contains(.dot)
            }
            guard isComma || isGlob else { continue }
            if isComma {
                let end = bytes[index...].firstIndex(of: .slash) ?? bytes.count
                if exists(String(decoding: bytes[..<end], as: UTF8.self)) { continue }
            }
            globs.append(String(decoding: bytes[start..<index], as: UTF8.self))
            start = rest.startIndex
        }
        guard !globs.isEmpty else { return nil }
        globs.append(String(decoding: bytes[start...], as: UTF8.self))
        let list = globs.map { doubleQuoted(String($0.drop { $0 == " " })) }.joined(separator: ", ")
        return TextProblem("\(quoted(text)) is one glob, not a list", at: bytes.indices, help: "write [\(list)]")
    }

    private static let backslash = UInt8(ascii: "\\")
}

/// Returns the indices of the bytes of a glob that are not escaped, and whether they are in braces; classes are left out.
private func unescapedPlaces(in bytes: [UInt8]) -> [(index: Int, isInBraces: Bool)] {
    var places: [(Int, Bool)] = []
    var index = 0
    var depth = 0
    while index < bytes.count {
        switch bytes[index] {
        case UInt8(ascii: "\\"): index += 1
        case UInt8(ascii: "["):
            guard let close = bytes.dropFirst(index + 2).firstIndex(of: UInt8(ascii: "]")) else { return places }
            index = close
        case UInt8(ascii: "{"): depth += 1
        case UInt8(ascii: "}"): depth = max(depth - 1, 0)
        default: places.append((index, depth > 0))
        }
        index += 1
    }
    return places
}

extension RuleDecoder {
    /// Warns about a glob that is valid, but hardly matches what was meant.
    func warnOfMistake(_ text: String, _ node: YAMLNode, key: String) {
        func exists(_ path: String) -> Bool {
            guard key == "path" else { return false }
            let path = path.hasPrefix("~/") ? (hostEnvironment.home ?? "") + path.dropFirst() : path
            if case .missing = FileReading.kind(of: directory.resolving(path.utf8)) { return false }
            return true
        }
        let foreign = GlobMistake.foreignPath(text)
        if foreign == nil, warnOfExpression(text, node, key: key) { return }
        guard let mistake = foreign ?? GlobMistake.first(in: text, key: key, exists: exists) else { return }
        problems.warning(
            mistake.message, at: mark(node, offset: mistake.range.lowerBound, length: mistake.range.count),
            help: mistake.help)
    }
}

// Globs compared with the directories of the machine.
extension RuleChecks {
    /// Warns about the globs of `exclude` and `outputs` that repeat the root, to which they are relative.
    func checkRelativeGlobs() {
        let roots = draft.rule.roots
        for key in ["exclude", "outputs"] {
            guard let entry = draft[key] else { continue }
            for (node, range) in values(entry) {
                guard let text = node.text, !text.hasPrefix("/"), !text.hasPrefix("~") else { continue }
                for root in roots where !warnOfLiteralName(Array(text.utf8), below: root, range) {
                    warnOfRepetition(of: root, in: text, range, key: key)
                }
            }
        }
    }

    /// Warns about a class or braces in the name of an existing file.
    func warnOfLiteralName(_ pattern: [UInt8], below root: PathBytes = "/", _ range: Range<Int>) -> Bool {
        guard pattern.contains(where: { "[{".utf8.contains($0) }) else { return false }
        var path = root
        for name in pattern.split(separator: .slash) {
            path = path.appending(name)
            guard name.contains(where: { "*?[{\\".utf8.contains($0) }) else { continue }
            guard name.contains(where: { "[{".utf8.contains($0) }), let glob = try? Glob(name), !glob.matches(name),
                case let kind = FileReading.kind(of: path)
            else { return false }
            let noun: String
            switch kind {
            case .directory: noun = "directory"
            case .file: noun = "file"
            default: return false
            }
            let literal = String(decoding: Glob.escaped(Array(name)), as: UTF8.self)
            problems.warning(
                "\(quoted(String(decoding: name, as: UTF8.self))) does not match the \(noun) of that name", at: range,
                help: "write '\(escaped(literal, limit: 80))' for literal brackets")
            return true
        }
        return false
    }

    private func warnOfRepetition(of root: PathBytes, in text: String, _ range: Range<Int>, key: String) {
        let names = text.utf8.split(separator: .slash).map(Array.init)
        let ends = root.bytes.split(separator: .slash).map(Array.init)
        guard let first = names.first,
            let count = (1...max(min(names.count, ends.count), 1)).first(where: {
                ends.suffix($0).elementsEqual(names.prefix($0))
            }), case .missing = FileReading.kind(of: root.appending(first))
        else { return }
        let rest = names.dropFirst(count).map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
        problems.warning(
            "\(quoted(text)) in '\(key)' is relative to \(quoted(root.description))", at: range,
            help: rest.isEmpty ? "write a path below it" : "write '\(escaped(rest, limit: 80))'")
    }
}

/// A statement of direvent.conf(5), with the line on which it starts.
struct DireventStatement {
    var keyword: String
    /// The values, including the elements of lists.
    var texts: [String] = []
    /// The statements between braces; nil for a simple statement.
    var block: [DireventStatement]?
    var line: Int
    /// The last line of the statement.
    var lastLine: Int
}

/// Reads the tokens and statements of direvent.conf(5), as far as they are valid.
struct DireventReader {
    private enum Token: Equatable {
        case text(String)
        case mark(Character)
        case end
    }

    private let text: [Character]
    /// The line of each character, and of the end.
    private let lines: [Int]
    private var index = 0
    /// The line on which the last token ends, after ``next()``.
    private var line: Int { lines[index] }
    /// Constructs that can't be read or are not followed, with their lines.
    private(set) var notices: [(line: Int, text: String)] = []

    init(_ text: String) {
        self.text = Array(text)
        lines = text.reduce(into: [1]) { $0.append($0[$0.count - 1] + ($1.isNewline ? 1 : 0)) }
    }

    /// Reads all statements.
    mutating func read() -> [DireventStatement] { statements(isNested: false) }

    private mutating func statements(isNested: Bool) -> [DireventStatement] {
        var statements: [DireventStatement] = []
        while true {
            switch next() {
            case .end:
                if isNested { notices.append((line, "missing '}' at the end")) }
                return statements
            case .mark("}") where isNested: return statements
            case .mark(";"): continue
            case .mark(let mark): notices.append((line, "unexpected '\(mark)'"))
            case .text(let keyword): statements.append(statement(keyword))
            }
        }
    }

    private mutating func statement(_ keyword: String) -> DireventStatement {
        var statement = DireventStatement(keyword: keyword, line: line, lastLine: line)
        reading: while true {
            let before = index
            switch next() {
            case .text(let text): statement.texts.append(text)
            case .mark("("): statement.texts += list()
            case .mark("{"):
                statement.block = statements(isNested: true)
                break reading
            case .mark(";"): break reading
            case .mark("}"), .end:
                // A statement without ';' ends with its block.
                index = before
                notices.append((statement.line, "missing ';' after '\(keyword)'"))
                break reading
            case .mark: continue
            }
        }
        statement.lastLine = line
        return statement
    }

    private mutating func list() -> [String] {
        var texts: [String] = []
        while true {
            switch next() {
            case .text(let text): texts.append(text)
            case .mark(")"), .end: return texts
            case .mark(";"), .mark("{"), .mark("}"):
                notices.append((line, "missing ')'"))
                return texts
            case .mark: continue
            }
        }
    }

    // MARK: - Tokens

    private static let marks: [Character] = ["{", "}", "(", ")", ";", ","]

    private mutating func next() -> Token {
        skipBlanks()
        guard index < text.count else { return .end }
        let character = text[index]
        if Self.marks.contains(character) {
            index += 1
            return .mark(character)
        }
        if character == "\"" { return .text(quoted()) }
        if starts("<<") { return .text(hereDocument()) }
        return .text(take { !$0.isWhitespace && !Self.marks.contains($0) && $0 != "\"" })
    }

    private func starts(_ word: String) -> Bool { text[index...].starts(with: Array(word)) }

    private mutating func skipBlanks() {
        while index < text.count {
            if text[index].isWhitespace {
                index += 1
            } else if text[index] == "#" || starts("//") {
                let comment = restOfLine()
                if comment.hasPrefix("#include") {
                    notices.append((line, "'\(comment)' is not followed; import that file separately"))
                }
            } else if starts("/*") {
                index += 2
                while index < text.count, !starts("*/") { index += 1 }
                index = min(index + 2, text.count)
            } else {
                return
            }
        }
    }

    private mutating func take(while belongs: (Character) -> Bool) -> String {
        let taken = text[index...].prefix(while: belongs)
        index = taken.endIndex
        return String(taken)
    }

    private mutating func restOfLine() -> String { take { !$0.isNewline } }

    /// Returns a quoted string, together with the quoted strings that follow it.
    private mutating func quoted() -> String {
        var result = ""
        index += 1
        while index < text.count, text[index] != "\"" {
            if text[index] == "\\", index + 1 < text.count {
                index += 1
                result += Self.escapes[text[index]] ?? (text[index].isNewline ? "" : String(text[index]))
            } else {
                result.append(text[index])
            }
            index += 1
        }
        index = min(index + 1, text.count)
        let end = index
        skipBlanks()
        if index < text.count, text[index] == "\"" { return result + quoted() }
        index = end
        return result
    }

    private static let escapes: [Character: String] = [
        "a": "\u{07}", "b": "\u{08}", "f": "\u{0C}", "n": "\n", "r": "\r", "t": "\t", "v": "\u{0B}",
    ]

    private mutating func hereDocument() -> String {
        index += 2
        let word = take { !$0.isNewline && $0 != ";" }
        _ = restOfLine()
        let isStripped = word.hasPrefix("-")
        let mark = word.filter { !" -\\\"".contains($0) }
        var lines: [String] = []
        while index < text.count {
            index += 1
            let read = restOfLine()
            let trimmed = String(read.drop { $0.isWhitespace })
            if trimmed == mark || trimmed.hasPrefix(mark + ";") {
                if trimmed.hasPrefix(mark + ";") { index -= trimmed.count - mark.count }
                break
            }
            lines.append(isStripped ? trimmed : read)
        }
        return lines.map { $0 + "\n" }.joined()
    }
}

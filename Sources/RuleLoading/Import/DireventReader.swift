/// A statement of direvent.conf(5), with the line that it begins in.
struct DireventStatement {
    enum Value: Equatable {
        case text(String)
        case list([String])

        var texts: [String] {
            switch self {
            case .text(let text): [text]
            case .list(let texts): texts
            }
        }
    }

    var keyword: String
    var values: [Value]
    /// The statements between braces; nil for a simple one.
    var block: [DireventStatement]?
    var line: Int
    /// The last line that belongs to it.
    var lastLine: Int

    var texts: [String] { values.flatMap(\.texts) }
}

/// Reads the tokens and statements of direvent.conf(5), as far as they make sense.
struct DireventReader {
    private enum Token: Equatable {
        case text(String)
        case mark(Character)
        case end
    }

    private let text: [Character]
    private var index = 0
    private var line = 1
    /// The line that the last token ends in.
    private var lastLine = 1
    /// What can't be read or is not followed, with its line.
    private(set) var remarks: [(line: Int, text: String)] = []

    init(_ text: String) { self.text = Array(text) }

    /// Reads all statements.
    mutating func read() -> [DireventStatement] { statements(isNested: false) }

    private mutating func statements(isNested: Bool) -> [DireventStatement] {
        var statements: [DireventStatement] = []
        while true {
            let token = next()
            let start = lastLine
            switch token {
            case .end:
                if isNested { remarks.append((start, "a '}' is missing at the end")) }
                return statements
            case .mark("}") where isNested: return statements
            case .mark(";"): continue
            case .mark(let mark): remarks.append((start, "'\(mark)' makes no sense here"))
            case .text(let keyword):
                statements.append(statement(keyword, line: start))
            }
        }
    }

    private mutating func statement(_ keyword: String, line: Int) -> DireventStatement {
        var statement = DireventStatement(keyword: keyword, values: [], line: line, lastLine: line)
        while true {
            let before = (index, self.line, lastLine)
            switch next() {
            case .text(let text): statement.values.append(.text(text))
            case .mark("("): statement.values.append(.list(list()))
            case .mark("{"):
                statement.block = statements(isNested: true)
                statement.lastLine = lastLine
                return statement
            case .mark(";"):
                statement.lastLine = lastLine
                return statement
            case .mark("}"), .end:
                // A missing ';' ends with its block.
                (index, self.line, lastLine) = before
                remarks.append((line, "'\(keyword)' has no ';' at its end"))
                statement.lastLine = lastLine
                return statement
            case .mark: continue
            }
        }
    }

    private mutating func list() -> [String] {
        var texts: [String] = []
        while true {
            switch next() {
            case .text(let text): texts.append(text)
            case .mark(")"), .end: return texts
            case .mark(";"), .mark("{"), .mark("}"):
                remarks.append((lastLine, "a ')' is missing"))
                return texts
            case .mark: continue
            }
        }
    }

    // MARK: - Tokens

    private static let marks: [Character] = ["{", "}", "(", ")", ";", ","]

    private mutating func next() -> Token {
        skipBlanks()
        lastLine = line
        guard index < text.count else { return .end }
        let character = text[index]
        if Self.marks.contains(character) {
            index += 1
            return .mark(character)
        }
        if character == "\"" { return .text(quoted()) }
        if starts("<<") { return .text(hereDocument()) }
        var word = ""
        while index < text.count, !text[index].isWhitespace, !Self.marks.contains(text[index]), text[index] != "\"" {
            word.append(text[index])
            index += 1
        }
        return .text(word)
    }

    private func starts(_ word: String) -> Bool { text[index...].starts(with: Array(word)) }

    private mutating func skipBlanks() {
        while index < text.count {
            if text[index].isNewline { line += 1 }
            if text[index].isWhitespace {
                index += 1
            } else if text[index] == "#" || starts("//") {
                let comment = restOfLine()
                if comment.hasPrefix("#include") {
                    remarks.append((line, "'\(comment)' is not followed; import that file, too"))
                }
            } else if starts("/*") {
                index += 2
                while index < text.count, !starts("*/") {
                    if text[index].isNewline { line += 1 }
                    index += 1
                }
                index = min(index + 2, text.count)
            } else {
                return
            }
        }
    }

    private mutating func restOfLine() -> String {
        var rest = ""
        while index < text.count, !text[index].isNewline {
            rest.append(text[index])
            index += 1
        }
        return rest
    }

    /// A text in quotes, and those that follow it.
    private mutating func quoted() -> String {
        var result = ""
        index += 1
        while index < text.count, text[index] != "\"" {
            if text[index].isNewline { line += 1 }
            if text[index] == "\\", index + 1 < text.count {
                index += 1
                result += Self.escape(text[index])
                if text[index].isNewline { line += 1 }
            } else {
                result.append(text[index])
            }
            index += 1
        }
        index = min(index + 1, text.count)
        lastLine = line
        let end = (index, line)
        skipBlanks()
        if index < text.count, text[index] == "\"" { return result + quoted() }
        (index, line) = end
        lastLine = line
        return result
    }

    private static func escape(_ character: Character) -> String {
        switch character {
        case "a": "\u{07}"
        case "b": "\u{08}"
        case "f": "\u{0C}"
        case "n": "\n"
        case "r": "\r"
        case "t": "\t"
        case "v": "\u{0B}"
        case _ where character.isNewline: ""
        default: String(character)
        }
    }

    private mutating func hereDocument() -> String {
        index += 2
        var word = ""
        while index < text.count, !text[index].isNewline, text[index] != ";" {
            word.append(text[index])
            index += 1
        }
        _ = restOfLine()
        let isStripped = word.hasPrefix("-")
        let mark = word.filter { !" -\\\"".contains($0) }
        var lines: [String] = []
        while index < text.count {
            index += 1
            line += 1
            let read = restOfLine()
            let trimmed = String(read.drop { $0.isWhitespace })
            if trimmed == mark || trimmed.hasPrefix(mark + ";") {
                if trimmed.hasPrefix(mark + ";") { index -= trimmed.count - mark.count }
                break
            }
            lines.append(isStripped ? trimmed : read)
        }
        lastLine = line
        return lines.map { $0 + "\n" }.joined()
    }
}

import Rules

/// A piece of a command in an imported table.
enum CommandPiece: Hashable {
    case text(String)
    /// The name of the event, the path of the watched file, or its directory or name.
    case value(Placeholder)

    /// The piece in an argument.
    var template: String {
        switch self {
        case .text(let text): YAMLText.literal(text)
        case .value(let placeholder): "${\(placeholder.word)}"
        }
    }

    /// The equivalent in a shell, without quotes; nil for text.
    var variable: String? {
        guard case .value(let placeholder) = self else { return nil }
        return String(ShellVariable.expression(for: placeholder).dropFirst().dropLast())
    }

    /// The text; nil for a value.
    var text: String? { if case .text(let text) = self { text } else { nil } }

    /// Returns the pieces with directory, slash and name merged into the path.
    static func joined(_ pieces: [CommandPiece]) -> [CommandPiece] {
        var result: [CommandPiece] = []
        for piece in pieces {
            if case .text(let text) = piece, case .text(let before) = result.last {
                result[result.count - 1] = .text(before + text)
            } else if piece == .value(.name), result.count >= 2, case .text(let slash) = result[result.count - 1],
                !slash.isEmpty, slash.allSatisfy({ $0 == "/" }), result[result.count - 2] == .value(.directory)
            {
                result.removeLast(2)
                result.append(.value(.path))
            } else {
                result.append(piece)
            }
        }
        return result
    }

    static func template(_ pieces: [CommandPiece]) -> String { joined(pieces).map(\.template).joined() }

    /// Returns the pieces as a shell line: each value is one quoted variable, so that the shell interprets nothing in
    /// a name.
    static func shellLine(_ pieces: [CommandPiece]) -> String {
        var line = ""
        var quote: Character?
        var isEscaped = false
        for piece in joined(pieces) {
            if let variable = piece.variable {
                line += quote == "'" ? "'\"\(variable)\"'" : quote == "\"" ? variable : "\"\(variable)\""
                isEscaped = false
            }
            for character in piece.text ?? "" {
                line.append(character)
                if isEscaped {
                    isEscaped = false
                } else if character == "\\", quote != "'" {
                    isEscaped = true
                } else if quote == character {
                    quote = nil
                } else if quote == nil, character == "'" || character == "\"" {
                    quote = character
                }
            }
        }
        return line
    }
}

/// A command split into arguments by the shell's rules for spaces, quotes and backslashes only.
struct CommandWords {
    var words: [[CommandPiece]] = []
    /// Characters that a shell would not have passed on unchanged, such as `|`.
    var syntax: [String] = []
    /// Whether a quote is open at the end.
    var isOpen = false

    /// The characters that are special outside quotes.
    private static let special: [Character] = ["|", "&", ";", "<", ">", "(", ")", "`", "*", "?", "[", "{", "$"]

    init(_ pieces: [CommandPiece]) {
        var word: [CommandPiece]?
        var quote: Character?
        var isEscaped = false
        func add(_ piece: CommandPiece) { word = (word ?? []) + [piece] }
        for piece in pieces {
            if piece.text == nil {
                if isEscaped, quote != nil { add(.text("\\")) }
                add(piece)
                isEscaped = false
            }
            for character in piece.text ?? "" {
                if isEscaped {
                    // Within double quotes a backslash escapes only characters that are special there.
                    let isPlain = quote == "\"" && !["$", "`", "\"", "\\"].contains(character)
                    add(.text((isPlain ? "\\" : "") + String(character)))
                    isEscaped = false
                } else if character == "\\", quote != "'" {
                    isEscaped = true
                } else if character == quote {
                    quote = nil
                } else if quote == nil, character == "'" || character == "\"" {
                    quote = character
                    word = word ?? []
                } else if quote == nil, character == " " || character == "\t" || character == "\n" {
                    if let whole = word { words.append(whole) }
                    word = nil
                } else {
                    let isSpecial =
                        switch quote {
                        case nil: Self.special.contains(character) || (word == nil && character == "#")
                        case "\"": character == "$" || character == "`"
                        default: false
                        }
                    if isSpecial, !syntax.contains(String(character)) { syntax.append(String(character)) }
                    add(.text(String(character)))
                }
            }
        }
        if isEscaped { add(.text("\\")) }
        if let whole = word { words.append(whole) }
        isOpen = quote != nil
    }

    /// The elements of `exec`.
    ///
    /// In a shell script, the values become variables, since a name must not become a command.
    var arguments: [String] {
        var arguments = words.map(CommandPiece.template)
        if isShell { arguments[2] = YAMLText.literal(CommandPiece.shellLine(words[2])) }
        // The program itself can't be a placeholder, but env(1) accepts any program.
        if let first = words.first, first.contains(where: { $0.variable != nil }) {
            arguments.insert("/usr/bin/env", at: 0)
        }
        return arguments
    }

    /// Whether the line calls a shell with a script argument that contains values.
    var isShell: Bool {
        guard words.count > 2, words[2].contains(where: { $0.variable != nil }),
            let program = Self.literal(words[0])?.split(separator: "/").last,
            ["sh", "bash", "dash", "ksh", "zsh"].contains(String(program)), let option = Self.literal(words[1])
        else { return false }
        return option.hasPrefix("-") && !option.hasPrefix("--") && option.hasSuffix("c")
    }

    private static func literal(_ word: [CommandPiece]) -> String? { word.map(\.text).complete()?.joined() }
}

package import Rules

/// A problem in a rules file: its location, a message and a remedy.
package struct Diagnostic: Error, Sendable, Hashable {
    package enum Severity: String, Sendable { case error, warning }

    package var severity: Severity
    /// The location of the problem; line 0 stands for the whole file.
    package var location: SourcePosition
    /// The number of columns that the caret line underlines, at least 1.
    package var length = 1
    package var message: String
    package var help: String?
    /// The source line to show, shortened around the problem if it is long; nil if there is none.
    package var sourceLine: String?
    /// The number of characters of `sourceLine` before the caret.
    package var caret = 0

    /// Creates a diagnostic for a whole file, such as one that can't be read.
    package init(_ severity: Severity, file: String, message: String, help: String?) {
        self.severity = severity
        location = SourcePosition(file: file, line: 0, column: 0)
        (self.message, self.help) = (message, help)
    }

    /// Creates a diagnostic for a range of a source text.
    package init(_ severity: Severity, in source: SourceText, at range: Range<Int>, message: String, help: String?) {
        self.init(severity, file: source.file, message: message, help: help)
        location = source.location(at: range.lowerBound)
        let line = source.lineRange(at: range.lowerBound)
        let start = min(range.lowerBound, line.upperBound)
        let end = max(start, min(range.upperBound, line.upperBound))
        // Of a long line, only as much is read as could be shown.
        let first = source.character(at: start)
        let from = max(line.lowerBound, source.offset(ofCharacter: max(0, first - Self.width - 1)))
        let to = min(line.upperBound, source.offset(ofCharacter: first + Self.width + 1))
        var before = Array(source.text(from..<start).unicodeScalars)
        var after = Array(source.text(start..<to).unicodeScalars)
        length = max(1, min(source.character(at: end) - first, after.count))
        if from > line.lowerBound || to < line.upperBound || before.count + after.count > Self.width {
            let lead = max(Self.lead, Self.width - after.count - 1)
            // An ellipsis in place of a single character would hide more than it saves.
            if before.count > lead + 1 { before = ["…"] + before.suffix(lead) }
            let available = Self.width - before.count
            if after.count > available { after = after.prefix(available - 1) + ["…"] }
            length = max(1, min(length, after.count))
        }
        caret = before.count
        sourceLine = String(String.UnicodeScalarView((before + after).map(Self.shown)))
    }

    /// The number of characters that a terminal shows without wrapping.
    private static let width = 120
    /// The number of characters of a long line shown before the caret.
    private static let lead = 60

    /// Returns the character to show; control characters would affect the terminal.
    private static func shown(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        switch scalar.properties.generalCategory {
        case .control: scalar == "\t" ? scalar : "\u{FFFD}"
        case .format, .lineSeparator, .paragraphSeparator: "\u{FFFD}"
        default: scalar
        }
    }
}

/// Returns user input for a message: quoted, without characters that affect the terminal, shortened if long.
func quoted(_ text: some StringProtocol) -> String { "'\(escaped(text, limit: 80))'" }

/// Returns user input as a YAML scalar in double quotes, for a remedy.
func doubleQuoted(_ text: String) -> String {
    "\"" + escaped(text, limit: 80).replacing(#"\"#, with: #"\\"#).replacing("\"", with: #"\""#) + "\""
}

/// Returns text without characters that affect the terminal; an ellipsis replaces everything beyond the limit.
func escaped(_ text: some StringProtocol, limit: Int = .max) -> String {
    var result = ""
    for (count, scalar) in text.unicodeScalars.enumerated() {
        guard count < limit else { return result + "…" }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned:
            result += scalar.escaped(asASCII: true)
        default: result.unicodeScalars.append(scalar)
        }
    }
    return result
}

/// Diagnostics in readable form.
///
///     rules/photos.yaml:12:14: error: unknown event 'change'
///      12 |     events: [change]
///         |              ^~~~~~
///         help: write 'modified'; the events are created, modified, deleted, moved, attributes
package enum DiagnosticText {
    /// Returns one diagnostic without a trailing newline, in color for a terminal.
    package static func text(of diagnostic: Diagnostic, isColored: Bool = false) -> String {
        func styled(_ text: String, _ style: Style) -> String {
            isColored ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
        }
        let severity: Style = diagnostic.severity == .error ? .error : .warning
        var location = escaped(diagnostic.location.file)
        if diagnostic.location.line > 0 { location += ":\(diagnostic.location.line):\(diagnostic.location.column)" }
        let kind = styled("\(diagnostic.severity.rawValue):", severity)
        // The writer of a message quotes user input; a message of a handler or a plugin is escaped only here.
        var lines = ["\(styled("\(location):", .bold)) \(kind) \(styled(escaped(diagnostic.message), .bold))"]
        if let source = diagnostic.sourceLine {
            let number = " \(diagnostic.location.line)"
            let margin = String(repeating: " ", count: number.count)
            let (padding, underline) = caretLine(under: source, caret: diagnostic.caret, length: diagnostic.length)
            lines.append(source.isEmpty ? "\(number) |" : "\(number) | \(source)")
            lines.append("\(margin) | \(padding)\(styled("^\(underline)", .caret))")
        }
        if let help = diagnostic.help { lines.append("    \(styled("help:", .bold)) \(escaped(help))") }
        return lines.joined(separator: "\n")
    }

    /// The graphic renditions of ECMA-48.
    private enum Style: String {
        case bold = "1"
        case error = "1;31"
        case warning = "1;35"
        case caret = "1;32"
    }

    private static func caretLine(under line: String, caret: Int, length: Int) -> (padding: String, underline: String) {
        let scalars = Array(line.unicodeScalars)
        var padding = ""
        for scalar in scalars.prefix(caret) {
            padding += scalar == "\t" ? "\t" : String(repeating: " ", count: columns(of: scalar))
        }
        // The width of a tab under the caret depends on the terminal; one column is enough to point at it.
        let marked = scalars.dropFirst(caret).prefix(length).reduce(0) { $0 + columns(of: $1) }
        return (padding, String(repeating: "~", count: max(marked, 1) - 1))
    }

    /// Returns the number of terminal columns that a character occupies.
    package static func columns(of scalar: Unicode.Scalar) -> Int {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark: return 0
        default: return wide.contains { $0.contains(scalar.value) } ? 2 : 1
        }
    }

    /// The blocks of wide characters (East Asian Width W and F of Unicode), approximated.
    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97C, 0xAC00...0xD7A3, 0xF900...0xFAFF,
        0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1F9FF,
        0x20000...0x3FFFD,
    ]
}

extension Diagnostic: CustomStringConvertible {
    package var description: String { DiagnosticText.text(of: self) }
}

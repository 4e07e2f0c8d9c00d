import Rules

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

    /// Returns all diagnostics, each followed by a newline.
    package static func text(of diagnostics: [Diagnostic]) -> String {
        diagnostics.map { text(of: $0) + "\n" }.joined()
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

import Configuration
import Glibc

/// A table in which each column is as wide as necessary.
enum TextTable {
    /// Returns the lines; text that exceeds the width of the terminal is wrapped in the last column.
    ///
    /// The first row has the titles; all cells have been made safe by ``Display``.
    static func lines(_ rows: [[String]], width: Int? = nil) -> [String] {
        let widths = rows[0].indices.map { column in rows.map { TerminalText.columns($0[column]) }.max() ?? 0 }
        let indent = widths.dropLast().reduce(0) { $0 + $1 + gap.count }
        let available = width.map { max(24, $0 - indent) }
        return rows.flatMap { cells -> [String] in
            let start = cells.indices.dropLast().map { TerminalText.padded(cells[$0], widths[$0]) + gap }.joined()
            let last = wrapped(cells.last ?? "", available)
            return last.enumerated().map { index, text in
                TerminalText.trimmed((index == 0 ? start : String(repeating: " ", count: indent)) + text)
            }
        }
    }

    private static let gap = "  "

    /// Returns the text wrapped at words to lines of this width.
    private static func wrapped(_ text: String, _ available: Int?) -> [String] {
        guard let available, TerminalText.columns(text) > available else { return [text] }
        return text.split(separator: " ").reduce(into: [""]) { lines, word in
            let line = lines[lines.count - 1]
            if line.isEmpty || TerminalText.columns("\(line) \(word)") <= available {
                lines[lines.count - 1] += line.isEmpty ? "\(word)" : " \(word)"
            } else {
                lines.append(String(word))
            }
        }
    }
}

/// Fits text to the width of a terminal.
///
/// The text must have been made safe by ``Display``.
enum TerminalText {
    /// Returns the width of the terminal of standard output or error; nil if it is not a terminal.
    static func width(_ descriptor: Int32 = STDOUT_FILENO) -> Int? { size(descriptor)?.columns }

    /// Returns the size of the terminal like ``width(_:)``.
    static func size(_ descriptor: Int32 = STDOUT_FILENO) -> (rows: Int, columns: Int)? {
        guard isatty(descriptor) == 1 else { return nil }
        var size = winsize()
        _ = ioctl(descriptor, UInt(TIOCGWINSZ), &size)
        let columns = getenv("COLUMNS").flatMap { Int(String(cString: $0)) }.flatMap { $0 > 0 ? $0 : nil } ?? 80
        return (size.ws_row > 0 ? Int(size.ws_row) : 24, size.ws_col > 0 ? Int(size.ws_col) : columns)
    }

    /// Returns the number of columns of the text.
    static func columns(_ text: String) -> Int { text.unicodeScalars.reduce(0) { $0 + DiagnosticText.columns(of: $1) } }

    /// Returns the text padded with trailing spaces to at least this number of columns.
    static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - columns(text)))
    }

    /// Returns the line without trailing spaces.
    static func trimmed(_ line: String) -> String { String(line.reversed().drop { $0 == " " }.reversed()) }

    /// Returns the text, or its start and an ellipsis if it takes more columns.
    static func beginning(_ text: String, _ width: Int) -> String {
        guard columns(text) > width else { return text }
        guard width > 0 else { return "" }
        return retained(text.unicodeScalars, width - 1) + "…"
    }

    /// Returns the text, or an ellipsis and its end if it takes more columns.
    ///
    /// Used for paths, whose end is most significant.
    static func end(_ text: String, _ width: Int) -> String {
        guard columns(text) > width else { return text }
        guard width > 0 else { return "" }
        let end = retained(text.unicodeScalars.reversed(), width - 1).unicodeScalars
        return "…" + String(String.UnicodeScalarView(end.reversed()))
    }

    /// Returns the start of a line that fits the width; color sequences do not count.
    static func cut(_ line: String, _ width: Int) -> String {
        let start = retained(line.unicodeScalars, width)
        return start.utf8.count < line.utf8.count ? start + "\u{1B}[0m" : line
    }

    private static func retained(_ scalars: some Sequence<Unicode.Scalar>, _ width: Int) -> String {
        var retained = String.UnicodeScalarView()
        var taken = 0
        var isEscape = false
        for scalar in scalars {
            if scalar == "\u{1B}" { isEscape = true }
            if !isEscape { taken += DiagnosticText.columns(of: scalar) }
            if taken > width { break }
            retained.append(scalar)
            if isEscape, scalar == "m" { isEscape = false }
        }
        return String(retained)
    }
}

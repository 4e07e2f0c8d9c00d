/// A table with titles, in which each column is as wide as necessary.
struct TextTable {
    let titles: [String]
    /// The cells, made safe by ``Display``.
    var rows: [[String]] = []

    init(_ titles: [String]) { self.titles = titles }

    mutating func add(_ cells: [String]) { rows.append(cells) }

    /// Returns the lines; text that exceeds the width of the terminal is wrapped in the last column.
    func lines(width: Int?) -> [String] {
        let widths = titles.indices.map { column in
            ([titles] + rows).map { TerminalText.columns($0[column]) }.max() ?? 0
        }
        let indent = widths.dropLast().reduce(0) { $0 + $1 + Self.gap.count }
        let room = width.map { max(24, $0 - indent) }
        return ([titles] + rows).flatMap { cells -> [String] in
            let start = cells.indices.dropLast().map { TerminalText.padded(cells[$0], widths[$0]) + Self.gap }.joined()
            let last = Self.wrapped(cells.last ?? "", room)
            return last.enumerated().map { index, text in
                Self.trimmed((index == 0 ? start : String(repeating: " ", count: indent)) + text)
            }
        }
    }

    private static let gap = "  "

    /// Returns the text wrapped at words to lines of this width.
    private static func wrapped(_ text: String, _ room: Int?) -> [String] {
        guard let room, TerminalText.columns(text) > room else { return [text] }
        var lines = [""]
        for word in text.split(separator: " ") {
            let line = lines[lines.count - 1]
            if line.isEmpty {
                lines[lines.count - 1] = String(word)
            } else if TerminalText.columns(line) + 1 + TerminalText.columns(String(word)) <= room {
                lines[lines.count - 1] += " \(word)"
            } else {
                lines.append(String(word))
            }
        }
        return lines
    }

    private static func trimmed(_ line: String) -> String { String(line.reversed().drop { $0 == " " }.reversed()) }
}

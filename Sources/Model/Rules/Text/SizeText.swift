/// Parses and formats sizes in the form of a rules file: `512`, `512 B`, `64 KB`, `1.5 MiB`.
package enum SizeText {
    private static let units: [(word: String, bytes: Double)] = [
        ("B", 1), ("KB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("KiB", 1_024), ("MiB", 1_048_576),
        ("GiB", 1_073_741_824),
    ]

    private static let form = "a size is a number and a unit: 512 B, 64 KB, 1.5 MiB"

    /// Parses a size; units ignore case, and a number without a unit is in bytes.
    package static func parse(_ text: String) throws(Problem) -> Int {
        let shown = text.count > 40 ? text.prefix(40) + "…" : text[...]
        let number = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        let word = text.dropFirst(number.count).drop { $0 == " " }
        guard let first = number.first, first != ".", number.last != ".", let value = Double(number) else {
            throw Problem("invalid size '\(shown)'", help: form)
        }
        guard let unit = word.isEmpty ? units.first : units.first(where: { $0.word.lowercased() == word.lowercased() })
        else {
            throw Problem("unknown unit '\(word.prefix(40))' in the size '\(shown)'", help: form)
        }
        let bytes = (value * unit.bytes).rounded()
        guard bytes < 1e15 else { throw Problem("the size '\(shown)' is too large", help: form) }
        return Int(bytes)
    }

    /// Formats a whole number of a binary unit, such as `512 MiB`; other sizes as ``shown(_:)`` does.
    package static func binary(_ bytes: UInt64) -> String {
        guard let unit = units.suffix(3).last(where: { bytes >= UInt64($0.bytes) && bytes % UInt64($0.bytes) == 0 })
        else { return shown(bytes) }
        return "\(bytes / UInt64(unit.bytes)) \(unit.word)"
    }

    /// Formats a size with at most three decimals, such as `300 B` or `1.5 KB`; in bytes if decimals would lose
    /// precision.
    static func shown(_ bytes: UInt64) -> String {
        guard let unit = units.prefix(4).last(where: { Double(bytes) >= $0.bytes }), unit.bytes > 1 else {
            return "\(bytes) B"
        }
        let value = (Double(bytes) / unit.bytes * 1_000).rounded() / 1_000
        guard value * unit.bytes == Double(bytes) else { return "\(bytes) B" }
        return value == value.rounded() ? "\(Int(value)) \(unit.word)" : "\(value) \(unit.word)"
    }
}

import System

/// Parses and formats durations in the form of a rules file: `0`, `500ms`, `2s`, `1.5h`, `1m30s`.
package enum DurationText {
    /// The units, longest first, with their length in nanoseconds.
    private static let units: [(word: String, nanoseconds: Int64)] = [
        ("d", 86_400_000_000_000), ("h", 3_600_000_000_000), ("m", 60_000_000_000), ("s", 1_000_000_000),
        ("ms", 1_000_000),
    ]

    /// Other common names of the units.
    private static let synonyms: [String: String] = [
        "day": "d", "days": "d", "hr": "h", "hrs": "h", "hour": "h", "hours": "h", "min": "m", "mins": "m",
        "minute": "m", "minutes": "m", "sec": "s", "secs": "s", "second": "s", "seconds": "s", "msec": "ms",
        "msecs": "ms", "millisecond": "ms", "milliseconds": "ms", "H": "h", "S": "s", "D": "d", "MS": "ms", "Ms": "ms",
    ]

    private static let form = "a duration is a number and a unit: 500ms, 2s, 10m, 1h, 1d"

    /// Formats a duration with at most the two largest units: `3d 4h`, `12m`, `500ms`.
    package static func shown(_ duration: Duration) -> String {
        if duration < .zero { return "-" + shown(.zero - duration) }
        if duration < .seconds(1) { return "\(Int((duration / .milliseconds(1)).rounded(.down)))ms" }
        var rest = duration.components.seconds
        var parts: [String] = []
        for (word, seconds) in [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)] as [(String, Int64)] {
            if rest >= seconds { parts.append("\(rest / seconds)\(word)") } else if !parts.isEmpty { break }
            rest %= seconds
        }
        return parts.prefix(2).joined(separator: " ")
    }

    /// Parses a duration; the units of several parts must be in descending order.
    ///
    /// - Parameters:
    ///   - text: The duration.
    ///   - limit: The maximum in days.
    /// - Returns: The duration.
    /// - Throws: The first error.
    package static func parse(_ text: String, days limit: Int64 = 365) throws(Problem) -> Duration {
        let maximum = limit * units[0].nanoseconds
        if text == "0" { return .zero }
        let shown = text.count > 40 ? text.prefix(40) + "…" : text[...]
        if text.hasPrefix("-") { throw Problem("the duration '\(shown)' is negative", help: form) }
        var rest = text.utf8[...]
        var total = Duration.zero
        var lastUnit = -1
        var corrected = ""
        var isWrong = false
        guard !rest.isEmpty else { throw Problem("the duration is empty", help: form) }
        while !rest.isEmpty {
            let parts = take(&rest, while: isNumeric).split(separator: ".", omittingEmptySubsequences: false)
            // The clocks have no more than nanoseconds.
            guard parts.count <= 2, parts[0].count <= 18, let whole = Int64(parts[0]),
                parts.count == 1 || (1...9).contains(parts[1].count)
            else { throw Problem("invalid duration '\(shown)'", help: form) }
            let blanks = take(&rest) { $0 == UInt8(ascii: " ") }
            let written = take(&rest) { !isNumeric($0) && $0 != UInt8(ascii: " ") }
            let unit = written.isEmpty ? "s" : synonyms[written] ?? written
            guard let index = units.firstIndex(where: { $0.word == unit }) else {
                if !written.contains(where: \.isLetter) { throw Problem("invalid duration '\(shown)'", help: form) }
                throw Problem("unknown unit '\(written.prefix(40))' in the duration '\(shown)'", help: form)
            }
            let gap = take(&rest) { $0 == UInt8(ascii: " ") }
            isWrong = isWrong || written != unit || !blanks.isEmpty || !gap.isEmpty
            corrected += ([String(whole)] + parts.dropFirst().map(String.init)).joined(separator: ".") + unit
            guard index > lastUnit else {
                throw Problem(
                    "the units in the duration '\(shown)' are not in descending order", help: "write it as in '1h30m'")
            }
            lastUnit = index
            let nanoseconds = units[index].nanoseconds
            let fraction = TimestampText.nanoseconds(parts.count == 2 ? parts[1] : "")
            total += .nanoseconds(nanoseconds) * Int64(fraction) / 1_000_000_000
            total += .nanoseconds(min(whole, maximum / nanoseconds + 1) * nanoseconds)
            guard total <= .nanoseconds(maximum) else {
                throw Problem("the duration '\(shown)' is longer than \(limit) days", help: "write '\(limit)d' at most")
            }
        }
        guard !isWrong else {
            let hasUnit = text.utf8.contains { !isNumeric($0) && $0 != UInt8(ascii: " ") }
            throw Problem(
                hasUnit ? "invalid duration '\(shown)'" : "the duration '\(shown)' has no unit",
                help: hasUnit ? "write '\(corrected)'" : Self.units(for: corrected.dropLast()))
        }
        return total
    }

    /// Returns the help for a number without a unit: the two most likely units.
    private static func units(for number: Substring) -> String {
        let (short, long) = (Double(number) ?? 0) < 100 ? ("s", "m") : ("ms", "s")
        return "write '\(number)\(short)' or '\(number)\(long)'"
    }

    /// Whether a number consists of such bytes.
    private static func isNumeric(_ byte: UInt8) -> Bool { byte.isDigit || byte == UInt8(ascii: ".") }

    /// Removes the first bytes that satisfy the condition, and returns them.
    private static func take(_ rest: inout Substring.UTF8View, while condition: (UInt8) -> Bool) -> String {
        let taken = rest.prefix(while: condition)
        rest = rest[taken.endIndex...]
        return String(taken) ?? ""
    }
}

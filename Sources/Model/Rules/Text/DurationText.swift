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
        let maximum = Duration.seconds(limit * 86_400)
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
            guard let number = Number(&rest) else { throw Problem("invalid duration '\(shown)'", help: form) }
            let blanks = rest.prefix { $0 == UInt8(ascii: " ") }.count
            rest = rest.dropFirst(blanks)
            let word = rest.prefix { !Number.begins(with: $0) && $0 != UInt8(ascii: " ") }
            let written = String(word) ?? ""
            rest = rest.dropFirst(word.count)
            let unit = written.isEmpty ? "s" : synonyms[written] ?? written
            guard let index = units.firstIndex(where: { $0.word == unit }) else {
                if !written.contains(where: \.isLetter) { throw Problem("invalid duration '\(shown)'", help: form) }
                throw Problem("unknown unit '\(written.prefix(40))' in the duration '\(shown)'", help: form)
            }
            let gap = rest.prefix { $0 == UInt8(ascii: " ") }.count
            rest = rest.dropFirst(gap)
            isWrong = isWrong || written.isEmpty || written != unit || blanks > 0 || gap > 0
            corrected += number.text + unit
            guard index > lastUnit else {
                throw Problem(
                    "the units in the duration '\(shown)' are not in descending order", help: "write it as in '1h30m'")
            }
            lastUnit = index
            guard let length = number.multiplied(by: units[index].nanoseconds), total + length <= maximum else {
                throw Problem("the duration '\(shown)' is longer than \(limit) days", help: "write '\(limit)d' at most")
            }
            total += length
        }
        guard !isWrong else {
            let hasUnit = text.utf8.contains { !Number.begins(with: $0) && $0 != UInt8(ascii: " ") }
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

    /// A decimal number without a sign.
    private struct Number {
        var whole: Int64
        var fraction: Int64
        /// 10 to the power of the number of fraction digits.
        var scale: Int64
        var text: String

        static func begins(with byte: UInt8) -> Bool { (48...57).contains(byte) || byte == UInt8(ascii: ".") }

        init?(_ rest: inout Substring.UTF8View) {
            let wholeDigits = rest.prefix { (48...57).contains($0) }
            rest = rest.dropFirst(wholeDigits.count)
            var fractionDigits = rest.prefix(0)
            if rest.first == UInt8(ascii: ".") {
                fractionDigits = rest.dropFirst().prefix { (48...57).contains($0) }
                rest = rest.dropFirst(1 + fractionDigits.count)
                // The clocks have no more than nanoseconds.
                guard (1...9).contains(fractionDigits.count) else { return nil }
            }
            guard !wholeDigits.isEmpty, wholeDigits.count <= 18, let whole = Int64(String(wholeDigits) ?? "") else {
                return nil
            }
            self.whole = whole
            fraction = Int64(String(fractionDigits) ?? "") ?? 0
            scale = (0..<fractionDigits.count).reduce(1) { scale, _ in scale * 10 }
            text = String(whole) + (fractionDigits.isEmpty ? "" : ".\(String(fractionDigits) ?? "")")
        }

        /// Returns the duration of this number of units; nil beyond 292 years.
        func multiplied(by nanoseconds: Int64) -> Duration? {
            let (length, isOverflow) = whole.multipliedReportingOverflow(by: nanoseconds)
            guard !isOverflow else { return nil }
            return .nanoseconds(length) + .nanoseconds(nanoseconds) * fraction / scale
        }
    }
}

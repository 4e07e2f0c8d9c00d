import Glibc
package import System

/// The parser of times as rules, users and Alight's own messages write them.
package enum TimestampText {
    /// Parses `2026-11-21`, `2026-11-21 14:02`, `2026-11-21T14:02:11.5Z`, `…+01:00`, or `@1234567890.5` in seconds
    /// since 1970.
    ///
    /// Without a time zone, the time is local. Nil for anything else.
    package static func parse(_ text: String) -> Timestamp? {
        if text.hasPrefix("@") { return seconds(text.dropFirst()) }
        let pattern =
            /(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:\d\d)?)?/
        guard let match = text.wholeMatch(of: pattern)?.output,
            let year = Int32(match.1), let month = Int32(match.2), let day = Int32(match.3),
            (1...12).contains(month), (1...31).contains(day)
        else { return nil }
        func number(_ part: Substring?) -> Int32 { part.flatMap { Int32($0) } ?? 0 }
        let (hour, minute, second) = (number(match.4), number(match.5), number(match.6))
        guard hour < 24, minute < 60, second <= 60 else { return nil }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (year - 1900, month - 1, day)
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (hour, minute, second)
        parts.tm_isdst = -1
        let seconds = match.8.map { timegm(&parts) - offset($0) } ?? mktime(&parts)
        // mktime(3) and timegm(3) turn February 31 into another day.
        guard parts.tm_mday == day else { return nil }
        return Timestamp(seconds: Int64(seconds), nanoseconds: nanoseconds(match.7 ?? ""))
    }

    private static func offset(_ zone: Substring) -> Int {
        guard zone != "Z" else { return 0 }
        let parts = zone.dropFirst().split(separator: ":").compactMap { Int($0) }
        let offset = (parts.first ?? 0) * 3600 + (parts.last ?? 0) * 60
        return zone.hasPrefix("-") ? -offset : offset
    }

    private static func seconds(_ text: Substring) -> Timestamp? {
        guard let match = text.wholeMatch(of: /(\d{1,12})(?:\.(\d{1,9}))?/)?.output, let seconds = Int64(match.1) else {
            return nil
        }
        return Timestamp(seconds: seconds, nanoseconds: nanoseconds(match.2 ?? ""))
    }

    /// Returns the nanoseconds of the digits after a decimal point.
    static func nanoseconds(_ digits: Substring) -> UInt32 {
        UInt32(digits + String(repeating: "0", count: 9 - digits.count)) ?? 0
    }
}

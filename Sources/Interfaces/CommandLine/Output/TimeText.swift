import Glibc
import Rules
import System

/// Parses and formats timestamps in local time.
enum TimeText {
    private static let form =
        "write a duration such as 30m, 2h or 7d, a date such as 2026-11-20, or both parts of "
        + "one: '2026-11-20 10:24'"

    /// Parses a timestamp: a duration before now, a date, or a date and a time of day.
    ///
    /// - Parameters:
    ///   - text: `2h`, `2026-11-20`, `2026-11-20 10:24`, `2026-11-20T10:24:03`, `2026-11-20T10:24:03.25`, with a
    ///     suffix `Z` for
    ///     UTC, or `10:24`.
    ///   - now: The current time.
    /// - Returns: The timestamp.
    /// - Throws: The error and its remedy.
    static func parse(_ text: String, now: Timestamp) throws(HandlerProblem) -> Timestamp {
        if let time = date(text, now: now) { return time }
        do throws(TextProblem) {
            return now.advanced(by: .zero - (try DurationText.parse(text)))
        } catch {
            // Text with separators of a date was meant as one.
            guard text.contains("-") || text.contains(":") || !text.contains(where: \.isNumber) else {
                throw HandlerProblem(message: error.message, help: error.help)
            }
            throw HandlerProblem(message: "invalid time '\(text.prefix(40))'", help: form)
        }
    }

    /// Parses a date, a time of day, or both with a space or `T` between them.
    private static func date(_ text: String, now: Timestamp) -> Timestamp? {
        let isUTC = text.hasSuffix("Z") && text.contains(":")
        let words = text.dropLast(isUTC ? 1 : 0).split(omittingEmptySubsequences: false) { $0 == " " || $0 == "T" }
        let day = words.first.flatMap { numbers($0, separator: "-", widths: [4, 2, 2]) }
        // Timestamps in JSON have fractions of a second.
        let parted = words.last?.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        let fraction = parted?.count == 2 ? parted?.last : nil
        let clock = parted?.first.flatMap { time in
            (fraction == nil ? numbers(time, separator: ":", widths: [2, 2]) : nil)
                ?? numbers(time, separator: ":", widths: [2, 2, 2])
        }
        guard words.count == (day != nil && clock != nil ? 2 : 1), day != nil || clock != nil && !isUTC,
            let nanoseconds = nanoseconds(fraction ?? "0")
        else { return nil }
        var parts = tm()
        if let day {
            (parts.tm_year, parts.tm_mon, parts.tm_mday) = (day[0] - 1900, day[1] - 1, day[2])
        } else {
            var seconds = time_t(now.seconds)
            localtime_r(&seconds, &parts)
        }
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (clock?[0] ?? 0, clock?[1] ?? 0, clock?.dropFirst(2).first ?? 0)
        guard parts.tm_hour < 24, parts.tm_min < 60, parts.tm_sec < 60 else { return nil }
        parts.tm_isdst = isUTC ? 0 : -1
        let (dayOfMonth, month) = (parts.tm_mday, parts.tm_mon)
        let seconds = isUTC ? timegm(&parts) : mktime(&parts)
        // mktime(3) turns February 31 into a day in March.
        guard parts.tm_mday == dayOfMonth, parts.tm_mon == month else { return nil }
        return Timestamp(seconds: Int64(seconds), nanoseconds: nanoseconds)
    }

    /// Parses the digits after a decimal point; returns nil for anything else, or for more than nine digits.
    private static func nanoseconds(_ fraction: Substring) -> UInt32? {
        guard (1...9).contains(fraction.utf8.count), fraction.utf8.allSatisfy(\.isDigit) else {
            return nil
        }
        return UInt32(fraction + String(repeating: "0", count: 9 - fraction.utf8.count))
    }

    /// Parses numbers with these numbers of digits; returns nil if the text has another form.
    private static func numbers(_ text: Substring, separator: Character, widths: [Int]) -> [Int32]? {
        let words = text.split(separator: separator, omittingEmptySubsequences: false)
        let isDigits = words.allSatisfy { $0.utf8.allSatisfy(\.isDigit) }
        guard isDigits, words.map(\.utf8.count) == widths else { return nil }
        return words.compactMap { Int32($0) }
    }

    /// Formats a timestamp: `10:24:03` for today, else `2026-11-20 10:24`.
    static func short(_ time: Timestamp, now: Timestamp) -> String {
        let day = text(now, "%Y-%m-%d")
        return text(time, "%Y-%m-%d") == day ? text(time, "%H:%M:%S") : text(time, "%Y-%m-%d %H:%M")
    }

    /// Formats a timestamp: `2026-11-20 10:24:03`.
    static func long(_ time: Timestamp) -> String { text(time, "%Y-%m-%d %H:%M:%S") }

    /// Formats the local time of day.
    static func clock(_ time: Timestamp) -> String { text(time, "%H:%M:%S") }

    private static func text(_ time: Timestamp, _ format: String) -> String {
        var seconds = time_t(time.seconds)
        var parts = tm()
        localtime_r(&seconds, &parts)
        var buffer = [CChar](repeating: 0, count: 40)
        let length = strftime(&buffer, buffer.count, format, &parts)
        return String(decoding: buffer[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

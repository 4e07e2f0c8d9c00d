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
    static func parse(_ text: String, now: Timestamp) throws(Problem) -> Timestamp {
        if let time = date(text, now: now) { return time }
        do throws(Problem) {
            return now.advanced(by: .zero - (try DurationText.parse(text)))
        } catch {
            // Text with separators of a date was meant as one.
            guard text.contains("-") || text.contains(":") || !text.contains(where: \.isNumber) else {
                throw error
            }
            throw Problem("invalid time '\(text.prefix(40))'", help: form)
        }
    }

    /// Parses a date, a time of day, or both with a space or `T` between them.
    private static func date(_ text: String, now: Timestamp) -> Timestamp? {
        let isClock = text.contains(":") && !text.contains { "-+Z".contains($0) }
        return TimestampText.parse(isClock ? "\(self.text(now, "%Y-%m-%d")) \(text)" : text)
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

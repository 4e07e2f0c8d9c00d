import Glibc
import System

/// The local time: its offset from UTC at each time.
///
/// It is passed as an argument where local time matters, so that tests can use any daylight saving rules.
package struct LocalClock: Sendable {
    /// Returns the seconds that local time is ahead of UTC, at a time in seconds since 1970.
    package var offset: @Sendable (Int64) -> Int64

    package init(offset: @escaping @Sendable (Int64) -> Int64) { self.offset = offset }

    /// The machine's local time, from `TZ` or its zone file.
    package static let system = LocalClock { seconds in
        var seconds = time_t(seconds)
        var parts = tm()
        return localtime_r(&seconds, &parts) == nil ? 0 : Int64(parts.tm_gmtoff)
    }

    /// Returns the local seconds since 1970, as if each day had 86,400 seconds.
    func wall(at seconds: Int64) -> Int64 { seconds + offset(seconds) }

    /// Returns the time within a span at which the offset changes; nil if both ends have the same offset.
    func change(from start: Int64, to end: Int64) -> Int64? {
        let before = offset(start)
        guard offset(end) != before else { return nil }
        return (start + 1..<end).bisected { offset($0) != before }
    }
}

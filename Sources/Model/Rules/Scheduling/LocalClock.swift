import Glibc

/// What the clocks on the wall show: how far local time is ahead of UTC at each moment.
///
/// It is passed in where local time decides, so that any rules of summer time can be tried.
package struct LocalClock: Sendable {
    /// Seconds that local time is ahead of UTC, at so many seconds after 1970.
    package var offset: @Sendable (Int64) -> Int64

    package init(offset: @escaping @Sendable (Int64) -> Int64) { self.offset = offset }

    /// The machine's, by `TZ` or its zone file.
    package static let system = LocalClock { seconds in
        var seconds = time_t(seconds)
        var parts = tm()
        return localtime_r(&seconds, &parts) == nil ? 0 : Int64(parts.tm_gmtoff)
    }

    /// Local seconds since 1970, as if each day had 86,400.
    func wall(at seconds: Int64) -> Int64 { seconds + offset(seconds) }

    /// The moment within a span at which the offset changes; nil if both ends have the same.
    func change(from start: Int64, to end: Int64) -> Int64? {
        let before = offset(start)
        guard offset(end) != before else { return nil }
        var (low, high) = (start, end)
        while high - low > 1 {
            let middle = low + (high - low) / 2
            if offset(middle) == before { low = middle } else { high = middle }
        }
        return high
    }
}

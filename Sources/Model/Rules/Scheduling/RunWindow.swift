import Glibc
package import System

/// The hours in which a rule's actions start, in local time.
///
/// The window is a pure function of the time and the clock. It is open if the local time of day is within one of its
/// spans. So a span that daylight saving time skips does not open on that day, and a span that occurs twice opens
/// twice.
package struct RunWindow: Sendable, Hashable {
    /// Hours of a day, which extend to the next day if the end is before the start.
    package struct Span: Sendable, Hashable {
        /// The days on which the span starts; 0 is Sunday.
        package var days: Set<Int>
        /// Minutes after midnight.
        package var start: Int
        /// Minutes after midnight, up to 1440; exclusive.
        package var end: Int

        package init(days: Set<Int> = Set(0..<7), start: Int, end: Int) {
            (self.days, self.start, self.end) = (days, start, end)
        }

        /// Whether the span contains a second of a day.
        fileprivate func holds(_ second: Int64, of weekday: Int) -> Bool {
            let (start, end) = (Int64(start) * 60, Int64(end) * 60)
            if start < end { return days.contains(weekday) && second >= start && second < end }
            return days.contains(weekday) && second >= start || days.contains((weekday + 6) % 7) && second < end
        }
    }

    package var spans: [Span]

    package init(_ spans: [Span]) { self.spans = spans }

    private static let day: Int64 = 86_400

    /// Whether actions may start.
    package func isOpen(at time: Timestamp, _ clock: LocalClock) -> Bool { isOpen(at: time.seconds, clock) }

    /// Returns the next time at which the window opens, after a time at which it is closed.
    package func opening(after time: Timestamp, _ clock: LocalClock) -> Timestamp {
        let now = time.seconds
        let today = Self.dayNumber(clock.wall(at: now))
        // A span that starts on a day of the week comes within eight days, or a week later if daylight saving time
        // skips it.
        for week in 0..<4 as Range<Int64> {
            var times: [Int64] = []
            for day in (today + 7 * week)...(today + 7 * week + 8) {
                for span in spans {
                    let wall = day * Self.day + Int64(span.start) * 60
                    // Near a change of the offset, a time of day occurs twice, or never.
                    for offset in [clock.offset(wall - Self.day), clock.offset(wall + Self.day)]
                    where clock.wall(at: wall - offset) == wall { times.append(wall - offset) }
                }
                let noon = now + (day - today) * Self.day
                if let change = clock.change(from: noon, to: noon + Self.day) { times.append(change) }
            }
            if let first = times.filter({ $0 > now && isOpen(at: $0, clock) }).min() {
                return Timestamp(seconds: first, nanoseconds: 0)
            }
        }
        // A window has a span, and no daylight saving time skips it for a month, so the next check is then.
        return Timestamp(seconds: now + 28 * Self.day, nanoseconds: 0)
    }

    private func isOpen(at seconds: Int64, _ clock: LocalClock) -> Bool {
        let wall = clock.wall(at: seconds)
        let day = Self.dayNumber(wall)
        // The first day of 1970 was a Thursday.
        let weekday = Int(((day + 4) % 7 + 7) % 7)
        return spans.contains { $0.holds(wall - day * Self.day, of: weekday) }
    }

    private static func dayNumber(_ wall: Int64) -> Int64 {
        let (days, rest) = wall.quotientAndRemainder(dividingBy: day)
        return rest < 0 ? days - 1 : days
    }
}

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

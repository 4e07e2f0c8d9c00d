package import System

/// `cooldown`: records which paths of a rule have had a run so recently that the next one has to wait.
///
/// Pure: the current time is passed in. Expired entries are removed.
package struct Cooldown {
    package let pause: Duration
    private var ends: [PathBytes: ContinuousClock.Instant] = [:]
    /// The same entries sorted by time, since all pauses are equally long; the first `gone` entries have expired.
    private var order: [(path: PathBytes, end: ContinuousClock.Instant)] = []
    private var gone = 0

    package init(_ pause: Duration) { self.pause = pause }

    /// The number of recorded paths.
    package var count: Int { ends.count }

    /// Records the end of a run for the path.
    package mutating func record(_ path: PathBytes, at now: ContinuousClock.Instant) {
        forget(until: now)
        ends[path] = now + pause
        order.append((path, now + pause))
    }

    /// Returns the time at which the next run for the path may start; nil if it may start now.
    package func end(of path: PathBytes, at now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        ends[path].flatMap { $0 > now ? $0 : nil }
    }

    private mutating func forget(until now: ContinuousClock.Instant) {
        while gone < order.count, order[gone].end <= now {
            let (path, end) = order[gone]
            // A later run may have extended it.
            if ends[path] == end { ends[path] = nil }
            gone += 1
        }
        if gone > 64, 2 * gone > order.count {
            order.removeFirst(gone)
            gone = 0
        }
    }
}

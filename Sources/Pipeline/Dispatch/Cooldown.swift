import FileEvents
package import System

/// Remembers which paths of a rule have had a run so lately that the next one has to wait.
///
/// Pure: the present is passed in. Of what is over nothing is kept.
package struct Cooldown {
    package let pause: Duration
    private var ends: [PathBytes: ContinuousClock.Instant] = [:]
    /// The same in the order of time, since all pauses are equally long; the first `gone` are over.
    private var order: [(path: PathBytes, end: ContinuousClock.Instant)] = []
    private var gone = 0

    package init(_ pause: Duration) { self.pause = pause }

    /// How many paths it remembers.
    package var count: Int { ends.count }

    /// Notes that a run for the path has ended.
    package mutating func note(_ path: PathBytes, at now: ContinuousClock.Instant) {
        forget(until: now)
        ends[path] = now + pause
        order.append((path, now + pause))
    }

    /// When the next run for the path may begin; nil when it may at once.
    package mutating func end(of path: PathBytes, at now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        forget(until: now)
        return ends[path]
    }

    private mutating func forget(until now: ContinuousClock.Instant) {
        while gone < order.count, order[gone].end <= now {
            let (path, end) = order[gone]
            // A later run may have made it longer.
            if ends[path] == end { ends[path] = nil }
            gone += 1
        }
        if gone > 64, 2 * gone > order.count {
            order.removeFirst(gone)
            gone = 0
        }
    }
}

package import System

/// A gate that suspends paths for which a rule runs again and again, as with rules that trigger themselves or each
/// other.
///
/// Pure: the current time is passed in. The dispatcher ends the job that exceeds the limit; later ones wait.
package struct LoopGuard {
    /// The maximum number of runs for one path within a period.
    package static let limit = 60
    /// The limit for rules that follow a file, which receive many small pieces of text.
    package static let followingLimit = 600
    /// The time in which runs are counted, and for which a path is suspended.
    package static let period = Duration.seconds(60)

    package var limit = LoopGuard.limit
    /// The times of the runs of the last period.
    private var recent: [PathBytes: [ContinuousClock.Instant]] = [:]
    private var suspended: [PathBytes: ContinuousClock.Instant] = [:]
    /// The number of paths above which old ones are removed.
    private var bound = 1024

    package init() {}

    /// Counts a run for a path.
    ///
    /// - Returns: Whether the limit is exceeded; the path is then suspended.
    package mutating func count(_ path: PathBytes, at now: ContinuousClock.Instant) -> Bool {
        if !suspended.isEmpty { suspended[path] = nil }
        var times = recent[path, default: []]
        times.removeAll { $0 + Self.period <= now }
        times.append(now)
        guard times.count > limit else {
            recent[path] = times
            prune(at: now)
            return false
        }
        recent[path] = nil
        suspend([path], at: now)
        return true
    }

    /// Removes the last run that was counted for a path, if it had no effect.
    package mutating func takeBack(_ path: PathBytes) { _ = recent[path]?.popLast() }

    /// Suspends paths that belong to one that has exceeded the limit.
    package mutating func suspend(_ paths: [PathBytes], at now: ContinuousClock.Instant) {
        for path in paths { suspended[path] = now + Self.period }
    }

    /// Returns the time until which a path is suspended; nil if it is not.
    package func end(of path: PathBytes, at now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        suspended[path].flatMap { $0 > now ? $0 : nil }
    }

    /// The number of paths whose runs are counted.
    package var count: Int { recent.count }

    /// Removes the paths without a run in the last period, if there are too many.
    private mutating func prune(at now: ContinuousClock.Instant) {
        guard recent.count > bound else { return }
        recent = recent.filter { $0.value.last.map { $0 + Self.period > now } ?? false }
        suspended = suspended.filter { $0.value > now }
        bound = max(1024, 2 * recent.count)
    }
}

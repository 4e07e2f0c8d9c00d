import FileEvents
import Reconciling
package import System

/// The gate of a rule that rests paths for which it runs again and again, as rules do that start themselves or each other.
///
/// Pure: the present is passed in. The job that was one too many is the dispatcher's to end; later ones wait.
package struct LoopGuard {
    /// How many runs for one path a rule may have in a period.
    package static let limit = 60
    /// The limit for rules that follow a file, which receive many small pieces of it.
    package static let followingLimit = 600
    /// The time in which runs are counted, and for which a path rests.
    package static let period = Duration.seconds(60)
    static let gate = Reconciler.Gate("loop")

    var limit = LoopGuard.limit
    /// The times of the runs of the last period.
    private var recent: [PathBytes: [ContinuousClock.Instant]] = [:]
    private var resting: [PathBytes: ContinuousClock.Instant] = [:]
    /// How many paths there may be before the old ones are dropped.
    private var bound = 1024

    package init() {}

    /// Counts a run for a path.
    ///
    /// - Returns: Whether it is one too many; the path rests from now on.
    package mutating func count(_ path: PathBytes, at now: ContinuousClock.Instant) -> Bool {
        var times = recent[path, default: []]
        times.removeAll { $0 + Self.period <= now }
        times.append(now)
        guard times.count > limit else {
            recent[path] = times
            prune(at: now)
            return false
        }
        recent[path] = nil
        rest([path], at: now)
        return true
    }

    /// Forgets the last run that was counted for a path, when nothing came of it.
    package mutating func takeBack(_ path: PathBytes) { _ = recent[path]?.popLast() }

    /// Lets paths rest that belong to one with a run too many.
    package mutating func rest(_ paths: [PathBytes], at now: ContinuousClock.Instant) {
        for path in paths { resting[path] = now + Self.period }
    }

    /// The time until which a path rests; nil if it does not.
    package mutating func end(of path: PathBytes, at now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        guard let end = resting[path] else { return nil }
        guard end <= now else { return end }
        resting[path] = nil
        return nil
    }

    /// The number of paths whose runs are counted.
    package var count: Int { recent.count }

    /// Drops the paths without a run in the last period, when they have become many.
    private mutating func prune(at now: ContinuousClock.Instant) {
        guard recent.count > bound else { return }
        recent = recent.filter { $0.value.last.map { $0 + Self.period > now } ?? false }
        resting = resting.filter { $0.value > now }
        bound = max(1024, 2 * recent.count)
    }
}

extension LoopGuard: Gate {
    mutating func verdict(for job: DueJob, at time: GateTime) -> Verdict {
        end(of: job.event.path, at: time.now).map { .wait(Self.gate, until: $0, nil) } ?? .run
    }
}

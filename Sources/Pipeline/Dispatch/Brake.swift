package import FileEvents

/// Stops rules that feed themselves: a path that one rule is told of again and again has to rest.
///
/// Pure: the present is passed in. What becomes of the job that was one too many
/// is the dispatcher's business; later ones wait.
package struct Brake {
    /// How many events of one path a rule may be told of in a period.
    package static let limit = 60
    /// The limit for rules that follow a file, of which many small pieces are told by intent.
    package static let followingLimit = 600
    /// The time in which events are counted, and for which a path rests.
    package static let period = Duration.seconds(60)

    private struct Key: Hashable {
        var rule: String
        var path: PathBytes
    }

    /// The times of what was told in the last period.
    private var recent: [Key: [ContinuousClock.Instant]] = [:]
    private var resting: [String: [PathBytes: ContinuousClock.Instant]] = [:]
    /// How many paths there may be before the old ones are dropped.
    private var bound = 1024

    package init() {}

    /// Notes that a rule is told of a path.
    ///
    /// - Returns: Whether that was once too often, so that the path rests from now on.
    package mutating func note(
        rule: String, path: PathBytes, limit: Int = Brake.limit, at now: ContinuousClock.Instant
    ) -> Bool {
        let key = Key(rule: rule, path: path)
        var times = recent[key, default: []]
        times.removeAll { $0 + Self.period <= now }
        times.append(now)
        guard times.count > limit else {
            recent[key] = times
            prune(at: now)
            return false
        }
        recent[key] = nil
        resting[rule, default: [:]][path] = now + Self.period
        return true
    }

    /// Forgets the last time that was noted of a path, when nothing came of it.
    package mutating func takeBack(rule: String, path: PathBytes) { _ = recent[Key(rule: rule, path: path)]?.popLast() }

    /// Lets paths rest that belong to one that was told of once too often.
    package mutating func rest(rule: String, paths: [PathBytes], at now: ContinuousClock.Instant) {
        for path in paths { resting[rule, default: [:]][path] = now + Self.period }
    }

    /// The paths of the rule that rest.
    package mutating func paths(of rule: String, at now: ContinuousClock.Instant) -> Set<PathBytes> {
        guard let held = resting[rule]?.filter({ $0.value > now }), !held.isEmpty else {
            resting[rule] = nil
            return []
        }
        resting[rule] = held
        return Set(held.keys)
    }

    /// When the next path has rested.
    package var deadline: ContinuousClock.Instant? { resting.values.compactMap { $0.values.min() }.min() }

    /// How many paths are being counted.
    package var count: Int { recent.count }

    /// Drops the paths of which nothing was told lately, when they have become many.
    private mutating func prune(at now: ContinuousClock.Instant) {
        guard recent.count > bound else { return }
        recent = recent.filter { $0.value.last.map { $0 + Self.period > now } ?? false }
        bound = max(1024, 2 * recent.count)
    }
}

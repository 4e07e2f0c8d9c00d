import TestKit

/// When in its life the program is ended, and how.
enum Moment {
    /// So long after its start, mostly before it is ready.
    case starting(Duration)
    /// So long after it says that it is ready, while files change.
    case working(Duration)
    /// So long after an action has begun.
    case acting(Duration)
    /// So long after nothing is left to be done.
    case idle(Duration)
    /// So long after it was asked to stop.
    case stopping(Duration, after: Duration)
    /// It is asked to stop, and not killed.
    case stopped(after: Duration)

    /// How often each comes, in relation to the others.
    private static let weights: [(Int, @Sendable (inout SeededGenerator) -> Moment)] = [
        (4, { .starting(.milliseconds($0.below(150))) }),
        (8, { .working(.milliseconds($0.below(700))) }),
        (8, { .acting(.milliseconds($0.below(30))) }),
        (2, { .idle(.milliseconds($0.below(100))) }),
        (3, { .stopping(.milliseconds($0.below(60)), after: .milliseconds($0.below(400))) }),
        (2, { .stopped(after: .milliseconds($0.below(500))) }),
    ]

    private static let total = weights.reduce(0) { $0 + $1.0 }

    static func draw(_ random: inout SeededGenerator) -> Moment {
        var place = random.below(total)
        for (weight, make) in weights {
            if place < weight { return make(&random) }
            place -= weight
        }
        preconditionFailure("a number below the sum of all weights is in one of them")
    }

    var isIdle: Bool {
        if case .idle = self { return true }
        return false
    }
}

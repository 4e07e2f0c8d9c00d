import TestKit

/// The time in a life at which the program is interrupted, and how.
enum Interruption {
    /// The given time after the start, mostly before the program is ready.
    case starting(Duration)
    /// The given time after the program reports that it is ready, while files change.
    case working(Duration)
    /// The given time after an action has started.
    case acting(Duration)
    /// The given time after all work is done.
    case idle(Duration)
    /// The given time after a request to stop.
    case stopping(Duration, after: Duration)
    /// A request to stop, without a kill.
    case stopped(after: Duration)

    /// The relative frequencies.
    private static let weights: [(Int, @Sendable (inout SeededGenerator) -> Interruption)] = [
        (4, { .starting(.milliseconds($0.below(150))) }),
        (8, { .working(.milliseconds($0.below(700))) }),
        (8, { .acting(.milliseconds($0.below(30))) }),
        (2, { .idle(.milliseconds($0.below(100))) }),
        (3, { .stopping(.milliseconds($0.below(60)), after: .milliseconds($0.below(400))) }),
        (2, { .stopped(after: .milliseconds($0.below(500))) }),
    ]

    static func draw(_ random: inout SeededGenerator) -> Interruption {
        let make = random.pick(weighted: weights)
        return make(&random)
    }

    var isIdle: Bool {
        if case .idle = self { return true }
        return false
    }
}

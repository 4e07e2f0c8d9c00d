package import System

/// The stored record of one attempt at a job.
package struct AttemptRecord: Sendable, Hashable {
    /// The number of the attempt, from 1.
    package var number: Int
    package var started: Timestamp
    package var duration: Duration
    package var outcome: Outcome

    package init(number: Int, started: Timestamp, duration: Duration, outcome: Outcome) {
        (self.number, self.started, self.duration, self.outcome) = (number, started, duration, outcome)
    }
}

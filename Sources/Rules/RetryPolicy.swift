/// How often a job is tried, and how long it rests in between.
package struct RetryPolicy: Sendable, Hashable {
    /// Attempts in all; the last that fails makes a dead letter.
    package var attempts: Int
    /// The pause after the first attempt; it doubles each time.
    package var delay: Duration
    package var maximumDelay: Duration
    /// Which failures are worth another attempt.
    package var on: Failures = .any

    package enum Failures: String, Sendable, Hashable, CaseIterable {
        /// Also an unknown exit status, a death by signal and a time-out, if the action is idempotent.
        case any
        /// Only what the action itself calls temporary.
        case temporary
    }

    package init(attempts: Int = 5, delay: Duration = .seconds(10), maximumDelay: Duration = .seconds(900)) {
        self.attempts = attempts
        self.delay = delay
        self.maximumDelay = maximumDelay
    }

    /// The pause after an attempt, between half and all of `delay · 2ⁿ⁻¹` but at most `maximumDelay`.
    ///
    /// - Parameters:
    ///   - attempt: The attempt that has ended, from 1.
    ///   - random: 0 to 1; spreads jobs that failed together.
    /// - Returns: How long the job rests.
    package func pause(after attempt: Int, random: Double) -> Duration {
        var pause = delay
        var doublings = max(attempt, 1) - 1
        // Nothing doubled stays nothing.
        while doublings > 0, pause > .zero, pause < maximumDelay {
            pause *= 2
            doublings -= 1
        }
        return min(pause, maximumDelay) * (0.5 + 0.5 * min(max(random, 0), 1))
    }
}

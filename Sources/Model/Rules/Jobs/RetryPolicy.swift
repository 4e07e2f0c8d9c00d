import PluginProtocol

/// The number of attempts at a job, and the delays between them.
package struct RetryPolicy: Sendable, Hashable {
    /// The maximum number of attempts; if the last one fails, the job is failed.
    package var attempts: Int
    /// The delay after the first attempt; it doubles after each further attempt.
    package var delay: Duration
    package var maximumDelay: Duration
    /// The failures that are retried.
    package var on: Failures = .any

    package enum Failures: String, Sendable, Hashable, CaseIterable {
        /// All failures, including an unknown exit status, termination by a signal and a timeout, if the action is
        /// idempotent.
        case any
        /// Only failures that the action itself reports as temporary.
        case temporary
    }

    package init(attempts: Int = 5, delay: Duration = .seconds(10), maximumDelay: Duration = .seconds(900)) {
        (self.attempts, self.delay, self.maximumDelay) = (attempts, delay, maximumDelay)
    }

    /// Whether a job with this outcome is not retried.
    ///
    /// - Parameters:
    ///   - outcome: The outcome of the attempt.
    ///   - attempt: The number of the attempt, from 1.
    /// - Returns: False if the job is due again.
    package func isFinal(_ outcome: Outcome, attempt: Int) -> Bool {
        switch outcome.result {
        case .succeeded, .skipped, .failed: true
        case .notReady: false
        case .retry where outcome.isInterrupted: false
        case .retry: attempt >= attempts || (on == .temporary && outcome.isUncertain)
        }
    }

    /// Whether the outcome makes the job a failed job.
    package func failsJob(_ outcome: Outcome, attempt: Int) -> Bool {
        (outcome.result == .failed || outcome.result == .retry) && isFinal(outcome, attempt: attempt)
    }

    /// Returns the delay of a job whose file was not ready: a quarter of the time that it has waited already.
    ///
    /// So a file that is ready soon is found soon, and a file that is never ready costs little.
    ///
    /// - Parameters:
    ///   - quiet: The minimum delay, which is at least a second.
    ///   - age: The time since the event was established.
    /// - Returns: The delay, at most `maximumDelay` unless `quiet` is longer.
    package func pause(whileNotReady quiet: Duration, age: Duration) -> Duration {
        max(quiet, .seconds(1), min(age / 4, maximumDelay))
    }

    /// Returns the delay after an attempt, between half and all of `delay · 2ⁿ⁻¹`, but at most `maximumDelay`.
    ///
    /// - Parameters:
    ///   - attempt: The number of the finished attempt, from 1.
    ///   - random: A number from 0 to 1 that spreads jobs that failed together.
    /// - Returns: The delay.
    package func pause(after attempt: Int, random: Double) -> Duration {
        var pause = delay
        var doublings = max(attempt, 1) - 1
        // Zero stays zero when doubled.
        while doublings > 0, pause > .zero, pause < maximumDelay {
            pause *= 2
            doublings -= 1
        }
        return min(pause, maximumDelay) * (0.5 + 0.5 * min(max(random, 0), 1))
    }
}

import PluginProtocol

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

    /// Whether a job whose attempt ended so is not tried again.
    ///
    /// - Parameters:
    ///   - outcome: How the attempt ended.
    ///   - attempt: Its number, from 1.
    /// - Returns: False if the job is due again.
    package func isFinal(_ outcome: Outcome, attempt: Int) -> Bool {
        switch outcome.ending {
        case .succeeded, .skipped, .failed: true
        case .notReady: false
        case .retry where outcome.isInterrupted: false
        case .retry: attempt >= attempts || (on == .temporary && outcome.isUncertain)
        }
    }

    /// Whether such an outcome makes a dead letter of the job.
    package func isDeadly(_ outcome: Outcome, attempt: Int) -> Bool {
        (outcome.ending == .failed || outcome.ending == .retry) && isFinal(outcome, attempt: attempt)
    }

    /// How long a job rests whose file was not ready: a quarter of the time that it has waited already.
    ///
    /// So what gets ready soon is seen soon, and what never does costs little.
    ///
    /// - Parameters:
    ///   - quiet: The least pause, though it is never below a second.
    ///   - age: How long ago the event was established.
    /// - Returns: The pause, at most `maximumDelay` if `quiet` is not longer.
    package func pause(whileNotReady quiet: Duration, age: Duration) -> Duration {
        max(quiet, .seconds(1), min(age / 4, maximumDelay))
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

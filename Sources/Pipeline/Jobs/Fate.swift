import ActionAPI
import FileEvents
import Gates
package import PluginProtocol
package import Reconciling
package import Rules
package import System

/// The consequence of an outcome for its job.
package enum Fate {
    case ended(JobState)
    case again(Duration, counts: Bool)

    package var state: JobState { if case .ended(let state) = self { state } else { .pending } }
    package var pause: Duration? { if case .again(let pause, _) = self { pause } else { nil } }

    /// - Parameters:
    ///   - outcome: The outcome of the attempt.
    ///   - job: The job at the end of the attempt.
    ///   - rule: Its rule.
    ///   - random: A number from 0 to 1, for the pause before the next attempt.
    ///   - now: The current time.
    package init(of outcome: Outcome, _ job: Job, _ rule: Rule, random: @autoclosure () -> Double, at now: Timestamp) {
        switch outcome.result {
        case .succeeded: self = .ended(.succeeded)
        case .skipped: self = .ended(.skipped)
        case .failed, .retry:
            if job.failure != nil || rule.retry.isFinal(outcome, attempt: job.attempt) {
                self = .ended(.failed)
            } else if outcome.isInterrupted {
                self = .again(.zero, counts: false)
            } else {
                let pause = outcome.retryAfter ?? rule.retry.pause(after: job.attempt, random: random())
                self = .again(pause, counts: true)
            }
        case .notReady:
            let quiet = rule.settle.quiet(isPolled: false)
            let pause = rule.retry.pause(whileNotReady: quiet, age: now.since(job.event.time))
            self = .again(outcome.retryAfter ?? pause, counts: false)
        }
    }
}

extension Reconciler.Termination {
    /// Creates the termination of the offer, or the frozen event, of a finished job.
    package init(_ state: JobState, _ outcome: Outcome) {
        switch (state, outcome.code) {
        case (.failed, _): self = .gaveUp
        case (.skipped, "gone"): self = .gone
        case (.skipped, "where"), (.skipped, "path"): self = .refused
        default: self = .succeeded
        }
    }
}

extension Outcome {
    /// The outcome of a job for a file to which too many actions have led, see ``OutputChains``.
    package static let endlessChain = looping(
        "\(OutputChains.limit) actions one after the other have led to this file, as with rules that run for what they "
            + "write themselves")

    /// The outcome of a job whose file was removed before its action started.
    package static let gone = Outcome(.skipped, "it was gone before the action started", code: "gone")

    /// The outcome of a job that ended in favor of a newer event.
    package static let replaced = Outcome(.skipped, "a newer event of the file replaced it", code: "superseded")

    /// Creates the outcome of a job that has exceeded the limit of the loop guard.
    package static func loop(_ what: String, _ limit: Int) -> Outcome {
        looping(
            "the rule has run for this \(what) \(limit) times within a minute, as rules do that trigger themselves or "
                + "each other")
    }

    private static func looping(_ reason: String) -> Outcome {
        let message = "not run: \(reason); when that is fixed, run it with 'alight retry'"
        var outcome = Outcome(.failed, message, code: "loop")
        outcome.isUnstarted = true
        return outcome
    }
}

extension Job {
    /// Whether an action of it has started in an earlier attempt.
    package var hasStarted: Bool { attempt > 0 && previous?.isUnstarted != true }

    /// Whether one of its steps has removed its file, or `on_failure` has copied it.
    package var isSetAside: Bool {
        (steps + (failure?.steps ?? [])).contains(where: \.hasRemovedInput)
            || (failure?.steps ?? []).contains { $0.outcome.outputs.contains { $0 != event.path } }
    }

    /// Returns the outcome of a job that was interrupted so often by the end of Alight that it may be the cause; nil
    /// otherwise.
    package func interruptedTooOften(_ retry: RetryPolicy) -> Outcome? {
        guard isInterrupted, attempt > retry.attempts + 5 else { return nil }
        let message = "\(attempt - 1) attempts were interrupted because Alight exited, which this job may have caused"
        return Outcome(.failed, message, code: "cut-off")
    }

    /// Records an attempt that is followed by another one.
    package mutating func putBack(_ outcome: Outcome, counts: Bool) {
        previous = PreviousAttempt(attempt, outcome)
        previous?.isUnstarted = outcome.isUnstarted
        if outcome.isCut { isInterrupted = true }
        isReported = true
        if !counts { attempt -= 1 }
    }

    /// Returns the job to store until `on_failure` is finished; nil if that list does not follow the attempt.
    package func givenUp(_ attempt: AttemptRecord, _ rule: Rule) -> Job? {
        var job = self
        let outcome = attempt.outcome
        guard failure == nil else {
            guard outcome.isInterrupted else { return nil }
            job.isInterrupted = true
            return job
        }
        guard !rule.onFailure.isEmpty, rule.retry.failsJob(outcome, attempt: self.attempt) else { return nil }
        job.failure = FinalFailure(attempt)
        job.previous = PreviousAttempt(self.attempt, outcome)
        return job
    }

    /// Discards the finished steps from the first one that is not in the rule's current list.
    package mutating func keepSteps(of rule: Rule) {
        hasLostInput = false
        guard !finishedSteps.isEmpty else { return }
        let retained = zip(finishedSteps, rule.actions(of: self)).prefix { $0.action == $1.digest }.count
        let forgotten = finishedSteps.dropFirst(retained)
        finishedSteps.removeLast(forgotten.count)
        hasLostInput = forgotten.contains(where: \.hasRemovedInput)
    }
}

extension PreviousAttempt {
    /// Creates the record of an attempt from its number and its outcome.
    package init(_ attempt: Int, _ outcome: Outcome) {
        self.init(attempt: attempt, outcome: outcome.result.rawValue, message: outcome.message)
    }
}

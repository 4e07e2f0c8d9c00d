import FileEvents
import PluginProtocol
package import Records
package import Rules
package import System

/// The end of an attempt at one job.
package enum AttemptTermination: Sendable {
    case outcome(Outcome)
    /// The file is gone and no action has started.
    case gone
    /// The file has changed since it settled, and no action has started.
    case changed
    /// No action has started: the file is not ready, and is checked again after the pause.
    case waiting(Waiting, pause: Duration)
}

/// The state of one job in an attempt.
package struct AttemptPart: Sendable {
    package var job: Job
    /// The job as it was leased.
    package let input: OpenJob
    package var termination = AttemptTermination.outcome(Outcome(.succeeded))
    /// Whether it has no step left.
    package var isOver = false
    /// Whether an action has started.
    package var hasStarted = false
    /// The changes of this attempt that can be undone.
    package var changes: [FileChange] = []
    /// The outputs of the last step, under each name by which the rule matches them.
    package var outputs: Set<PathBytes> = []
    /// Whether a finished step has removed the file.
    package var hasRemovedInput = false
    /// The metadata of the file after the last step; nil if they were not read.
    package var seen: Snapshot?

    package init(_ input: OpenJob) {
        job = input.job
        self.input = input
    }

    package mutating func end(_ termination: AttemptTermination) {
        self.termination = termination
        isOver = true
    }

    /// The finished steps of the running list; the last one stands for all that have removed the file in this
    /// attempt.
    package var steps: [FinishedStep] {
        var steps = job.finishedSteps
        if hasRemovedInput, !steps.isEmpty { steps[steps.count - 1].hasRemovedInput = true }
        return steps
    }

    package var hasSucceeded: Bool {
        if case .outcome(let outcome) = termination { outcome.result == .succeeded } else { false }
    }
}

/// The result of an attempt at one job, or at several together.
package struct AttemptResult: Sendable {
    /// The rule at the start of the attempt.
    package let rule: Box<Rule>
    /// The parts in the order of the jobs.
    package var parts: [AttemptPart]
    package var started: Timestamp
    package var duration: Duration

    package init(rule: Box<Rule>, parts: [AttemptPart], started: Timestamp, duration: Duration) {
        (self.rule, self.parts, self.started, self.duration) = (rule, parts, started, duration)
    }

    package var hasSucceeded: Bool { parts.allSatisfy(\.hasSucceeded) }
}

// What an earlier attempt at a leased job may have done.
extension OpenJob {
    /// Whether an action of it has started before.
    package var hasStartedBefore: Bool {
        if job.failure != nil || !job.steps.isEmpty { return true }
        return (offer?.hasRun ?? (job.attempt > 1)) && job.previous?.isUnstarted != true
    }
    /// Whether an earlier attempt was interrupted, and may have done a part of the work.
    package var isInterrupted: Bool { offer?.mayBePartlyDone ?? false }
    /// Whether an earlier attempt may have removed the file without finishing.
    package var mayBeDone: Bool { offer.map { $0.hasRemovedInput || $0.mayHaveRemovedInput } ?? false }
}

package import FileEvents
package import Gates
import PluginProtocol
package import Reconciling
package import Records
package import Rules
package import System
package import Watching

/// The reports of the engine, delivered on its thread and in order.
package enum EngineReport: Sendable {
    /// Every watch is live.
    case ready(directories: Int, rules: Int)
    /// Other rules run now, and all their watches are live.
    case reloaded(directories: Int, rules: Int)
    /// Other rules can't run; the previous ones are still running.
    case notReloaded(StartError)
    /// A root could not be created; its rule waits for it.
    case notCreated(StartError)
    /// Events have become the given jobs.
    case accepted([Job])
    /// The set of paused rules has changed.
    case paused(Pauses)
    /// An attempt is finished.
    case attempt(AttemptReport)
    /// An attempt at several jobs that ran together is finished.
    case batch([AttemptReport])
    /// A rule is suspended for a path, since it has run for it `limit` times within the loop guard's period.
    ///
    /// The job that exceeds the limit is marked as failed, if it could be removed.
    case loopDetected(rule: String, path: PathBytes, limit: Int, pause: Duration)
    /// A rule did not run for a file to which `limit` actions one after the other have led; reported once in the loop
    /// guard's period.
    case chainDetected(rule: String, path: PathBytes, limit: Int)
    /// A job was dropped since the file had changed: it settles again. A job with an earlier attempt has ended as in
    /// the report.
    case superseded(rule: String, job: JobID, path: PathBytes, ended: AttemptReport? = nil)
    /// The given number of attempts of a rule have failed in a row, the last one with this message.
    ///
    /// Jobs are then run one at a time.
    case slowed(rule: String, failures: Int, cannotStart: Bool, message: String)
    /// A job of a rule that was slowed down has succeeded.
    case recovered(rule: String)
    /// A report of the watcher, other than `ready`.
    case watching(WatchReport)
    /// The kernel does not report writers, although rules request them.
    case writersUnreported(WatchError)
    /// A condition of a path that has not settled.
    case notice(Reconciler.Warning)
    /// A set of files has lacked some kinds for the given time.
    case incomplete(rule: String, path: PathBytes, missing: [String], for: Duration)
    /// A job waits for long, or for a file that cannot be read.
    case longWait(LongWait)
    /// Jobs of a rule wait for its window, which opens at this local time.
    case closed(rule: String, opens: String)
    /// A rule without a name is new since a reload; the other ones are no longer loaded.
    case newPath(rule: String, insteadOf: [String])
    /// A cleaning rule that runs for the first time ignores the given number of existing files.
    case ignored(rule: String, files: Int)
    /// Jobs of a rule that does not run wait until it is loaded.
    case waiting(rule: String, jobs: Int)
    /// The journal can't be read or written; nil once it can be again.
    case journal(StorageError?)
    /// A turn is finished; reported as often as ``EngineOptions/signOfLife`` specifies.
    case alive
    /// A stop was requested; the given number of jobs are finished first.
    case draining(jobs: Int)

    /// The attempts of a report.
    package var attempts: [AttemptReport] {
        switch self {
        case .attempt(let attempt): [attempt]
        case .batch(let attempts): attempts
        default: []
        }
    }
}

/// One attempt, as a line of the log.
package struct AttemptReport: Sendable {
    package var time: Timestamp
    package var rule: String
    package var event: EventKind
    package var path: PathBytes
    /// The former path of a moved file.
    package var from: PathBytes?
    package var job: JobID
    package var attempt: Int
    package var maximumAttempts: Int
    /// The action's name; for a list, all names joined by `+`.
    package var action: String
    package var outcome: Outcome
    package var duration: Duration
    /// The current state of the job; `pending` if it is retried.
    package var state: JobState
    /// The pause before the next attempt.
    package var pause: Duration?
    /// Whether its action has started.
    package var hasStarted: Bool
    /// Whether it is the first report of its job in this run of the program.
    package var isFirst: Bool

    /// The outcome as it is counted: a job that has failed is not retried, whatever its last attempt has returned.
    package var result: Outcome.Result { state == .failed ? .failed : outcome.result }

    /// Creates the report of a finished attempt, or of a job that finished without one.
    package init(
        _ job: Job, _ rule: Rule, attempt: Int, _ outcome: Outcome, duration: Duration, _ state: JobState,
        pause: Duration?, hasStarted: Bool, at time: Timestamp
    ) {
        self.hasStarted = hasStarted
        isFirst = !job.isReported && job.due == nil
        (self.time, self.rule, event, path, from) = (time, rule.name, job.event.kind, job.event.path, job.event.from)
        (self.job, self.attempt, maximumAttempts) = (job.id, attempt, rule.retry.attempts)
        (action, self.outcome, self.duration) = (rule.actions.names, outcome, duration)
        (self.state, self.pause) = (state, pause)
    }
}

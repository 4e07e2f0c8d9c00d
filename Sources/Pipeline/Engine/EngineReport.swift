package import FileEvents
package import FileWatching
package import Reconciling
package import Rules
package import Storage
package import System

/// What the engine tells the command, on the engine's thread and in order.
package enum EngineReport: Sendable {
    /// Every watch is live.
    case ready(folders: Int, rules: Int)
    /// Other rules run now, and every watch of theirs is live.
    case reloaded(folders: Int, rules: Int)
    /// Other rules can't run; those that ran still do.
    case notReloaded(StartError)
    /// Events have become these jobs.
    case accepted([Job])
    /// Other rules rest than before, or go on.
    case paused(Pauses)
    /// An attempt ended.
    case attempt(AttemptReport)
    /// An attempt at several jobs ended, which ran together.
    case batch([AttemptReport])
    /// A rule does not run for a path for a while, since it has run for it `limit` times in the last one.
    ///
    /// The job that was one too many has become a dead letter, if it could be taken out.
    case braked(rule: String, path: PathBytes, limit: Int, pause: Duration)
    /// A job was dropped before its action began, since the file had changed: it settles again.
    case superseded(rule: String, job: JobID, path: PathBytes)
    /// So many attempts of a rule have failed in a row, lastly with this message; jobs are tried one at a time.
    case slowed(rule: String, failures: Int, cannotStart: Bool, message: String)
    /// A job of a rule that was slowed down has succeeded.
    case recovered(rule: String)
    /// Something about the watching, other than `ready`.
    case watching(WatchReport)
    /// The kernel does not say who does what to files, though rules ask.
    case authorsUntold(WatchError)
    /// A condition of a path that has not settled.
    case remark(Reconciler.Warning)
    /// A set of files has lacked some kinds for so long.
    case incomplete(rule: String, path: PathBytes, missing: [String], for: Duration)
    /// Jobs of a rule wait for its hours, which begin at this local time.
    case closed(rule: String, opens: String)
    /// Jobs of a rule that does not run wait until it does.
    case waiting(rule: String, jobs: Int)
    /// The journal can't be read or written; nil when it can be again.
    case journal(JournalFault?)
    /// A turn has ended; reported as often as ``Engine/Options/signOfLife`` asks for.
    case alive
    /// The stop was asked for: so many jobs are finished first.
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
    /// The action's name; of a list all of them, joined by `+`.
    package var action: String
    package var outcome: Outcome
    package var duration: Duration
    /// Where the job stands now; `pending` when it is tried again.
    package var state: JobState
    /// The pause before the next attempt.
    package var pause: Duration?

    /// The report of an attempt that has ended, or of a job that ended without one.
    package init(
        _ job: Job, _ rule: Rule, attempt: Int, _ outcome: Outcome, duration: Duration, _ state: JobState,
        pause: Duration?, at time: Timestamp
    ) {
        (self.time, self.rule, event, path, from) = (time, rule.name, job.event.kind, job.event.path, job.event.from)
        (self.job, self.attempt, maximumAttempts) = (job.id, attempt, rule.retry.attempts)
        (action, self.outcome, self.duration) = (rule.actionNames, outcome, duration)
        (self.state, self.pause) = (state, pause)
    }
}

/// How a run of the engine ended.
package struct EngineSummary: Sendable {
    package var succeeded: Int
    package var skipped: Int
    package var dead: Int
    /// Accepted, but not finished when the engine stopped.
    package var unfinished: Int
    /// Paths that were still settling.
    package var unsettled: [PathBytes]
    /// Whether everything was ended at once.
    package var isForced: Bool
    /// Why the engine could not go on.
    package var fault: WatchError?
    /// Why the journal did not keep what was done last.
    package var journalFault: JournalFault?

    package init(
        succeeded: Int, skipped: Int, dead: Int, unfinished: Int, unsettled: [PathBytes], isForced: Bool,
        fault: WatchError?, journalFault: JournalFault?
    ) {
        self.succeeded = succeeded
        self.skipped = skipped
        self.dead = dead
        self.unfinished = unfinished
        self.unsettled = unsettled
        self.isForced = isForced
        self.fault = fault
        self.journalFault = journalFault
    }
}

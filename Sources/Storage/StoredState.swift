package import Reconciling
package import Rules
package import System

/// The stored state of a rule.
package struct StoredRule: Sendable, Hashable {
    package var id: RuleID
    package var start: RuleStart
}

/// The stored state of the program, except rules, jobs and the ledger.
package struct StoredState: Sendable, Hashable {
    /// The time of the last commit of an earlier run, or up to a second before it; nil if there was none.
    package var lastCommit: Timestamp?
    /// The mount points that contain files of the rules.
    package var mounts: [MountRecord] = []
    package var pauses = Pauses()
    /// The unfinished jobs of rules that do not run, by the rule's name.
    package var unloaded: [String: Int] = [:]
    /// A number that is not exceeded by any job.
    package var number: UInt64 = 0

    package init() {}
}

/// A job as it is stored.
package struct StoredJob: Sendable {
    package var job: Job
    package var state: JobState
    /// The event as the reconciler offered it; nil for a frozen job, whose event is not compared with the ledger.
    package var offer: Offer?
    /// The order of jobs, and the number of the offer.
    package var number: UInt64
    /// The time at which a pending job is due, or a running one was leased; nil for the time of the commit.
    package var due: ContinuousClock.Instant?

    package init(_ job: Job, _ state: JobState, _ offer: Offer?, number: UInt64, due: ContinuousClock.Instant? = nil) {
        (self.job, self.state, self.offer, self.number, self.due) = (job, state, offer, number, due)
    }
}

/// The changes of one turn of the engine, or of several if commits have failed.
package struct TurnChanges: Sendable {
    /// Ledger rows; an empty one is deleted.
    package var rows: [RuleID: [PathBytes: LedgerRow]] = [:]
    /// Due paths that are stored or deleted.
    package var due: [RuleID: [PathBytes: DueChange]] = [:]
    /// The last state of each changed job.
    package var jobs: [JobID: JobChange] = [:]
    package var attempts: [(job: JobID, record: AttemptRecord)] = []
    package var undos: [(changes: KeptChanges, record: UndoRecord)] = []
    /// The mount points and the pauses, if they have changed.
    package var mounts: [MountRecord]?
    package var pauses: Pauses?
    /// Whether all existing files have been compared, or taken as handled.
    package var hasStarted = false

    package init() {}
}

/// The change of one job in a commit.
package struct JobChange: Sendable {
    /// The new state of the job; indirect, since it is large.
    package indirect enum Fate: Sendable {
        /// It runs, waits for another attempt, or is frozen.
        case unfinished(StoredJob)
        /// It is finished, with the outputs of all its steps.
        case ended(StoredJob, Outcome)
        /// Its row is deleted.
        case deleted
    }

    package var fate: Fate
    /// Whether the row is new, or its event has changed; otherwise only its state is written.
    package var isNew: Bool

    package init(_ fate: Fate, isNew: Bool) { (self.fate, self.isNew) = (fate, isNew) }
}

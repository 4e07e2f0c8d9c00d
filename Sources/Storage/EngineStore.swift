package import Reconciling
package import Rules
package import System

/// The store of the engine: the ledger, the unfinished jobs, and the history of finished ones.
///
/// The engine calls it from one thread and maintains the state of the run itself. It reads the state left by an
/// earlier run, and commits the changes of each turn in one transaction. Until then a call returns the last committed
/// state.
package protocol EngineStore: LedgerStore {
    /// Sets the rules that run from now on.
    ///
    /// Called before everything else, and again when other rules run. Former names of a rule are removed: its ledger
    /// and its jobs are those stored under them.
    ///
    /// - Parameters:
    ///   - rules: The rules.
    ///   - isWatching: Whether their files are watched from now on; otherwise only their jobs run.
    ///   - now: The current time.
    /// - Returns: The stored state of each rule, in the order of the rules.
    func begin(_ rules: [RuleRecord], isWatching: Bool, at now: Timestamp) -> [StoredRule]

    /// Returns the id of a stored rule, running or not; nil if there is none with that name.
    func id(of rule: String) -> RuleID?

    /// The stored state of the program, except rules, jobs and the ledger.
    var stored: StoredState { get }

    /// Returns the unfinished jobs of a rule, sorted by number: running jobs, jobs that wait for another attempt, and
    /// frozen jobs.
    ///
    /// Their metadata have no mount ids, which are valid only in the run that has stored them.
    func unfinishedJobs(of rule: RuleID, at clocks: ClockPair) -> [StoredJob]

    /// Returns the stored due paths of a rule, sorted.
    func duePaths(of rule: RuleID) -> [StoredDuePath]

    /// Returns a job in any state; nil if there is none, or if its row cannot be read.
    func job(_ id: JobID, at clocks: ClockPair) -> StoredJob?

    /// Returns the changes to files by the attempts at a job that can be undone, the last attempt first.
    func changes(of id: JobID) -> [KeptChanges]

    /// Returns the job that `ready` has refused for the current content of the path; nil if there is none.
    func refusal(rule: String, path: PathBytes, snapshot: Snapshot) -> Refusal?

    /// Writes the changes in one transaction.
    ///
    /// - Returns: Nil once they are committed. After an error nothing is written, and the caller passes the changes
    ///   again, with later ones.
    func commit(_ changes: TurnChanges, at clocks: ClockPair) -> StorageError?
}

/// The stored state of a rule.
package struct StoredRule: Sendable, Hashable {
    package var id: RuleID
    package var start: RuleStart

    package init(id: RuleID, start: RuleStart) {
        self.id = id
        self.start = start
    }
}

/// The stored state of the program, except rules, jobs and the ledger.
package struct StoredState: Sendable, Hashable {
    /// The time of the last commit of an earlier run, or up to a second before it; nil if there was none.
    package var lastCommit: Timestamp?
    /// The mount points that contain files of the rules.
    package var mounts: [MountRecord]
    package var pauses: Pauses
    /// The unfinished jobs of rules that do not run, by the rule's name.
    package var unloaded: [String: Int]
    /// A number that is not exceeded by any job.
    package var number: UInt64

    package init(
        lastCommit: Timestamp? = nil, mounts: [MountRecord] = [], pauses: Pauses = Pauses(),
        unloaded: [String: Int] = [:], number: UInt64 = 0
    ) {
        self.lastCommit = lastCommit
        self.mounts = mounts
        self.pauses = pauses
        self.unloaded = unloaded
        self.number = number
    }
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
        self.job = job
        self.state = state
        self.offer = offer
        self.number = number
        self.due = due
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

    package init(_ fate: Fate, isNew: Bool) {
        self.fate = fate
        self.isNew = isNew
    }
}

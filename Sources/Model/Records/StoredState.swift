package import FileEvents
package import Rules
package import System

/// The stored state of a rule.
package struct StoredRule: Sendable, Hashable {
    package var id: RuleID
    package var start: RuleStart

    package init(id: RuleID, start: RuleStart) { (self.id, self.start) = (id, start) }
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

/// An unfinished job, with the part of it that belongs to the ledger.
///
/// No fact is in both parts: the engine changes the job, and the reconciler its offer.
package final class OpenJob: Sendable {
    package let job: Job
    /// The offer, which the reconciler keeps; nil for a job that is not compared with the ledger.
    package let offer: Offer?
    /// The time of the lease of a job that was running when it was stored.
    package let leased: ContinuousClock.Instant?

    package init(_ job: Job, _ offer: Offer?, leased: ContinuousClock.Instant? = nil) {
        (self.job, self.offer, self.leased) = (job, offer, leased)
    }

    /// The time at which the next attempt is due; nil while an attempt runs.
    package var due: ContinuousClock.Instant? {
        guard let offer else { return job.schedule?.next }
        if case .retrying(let time) = offer.state { return time }
        return nil
    }
    package var isRunning: Bool { due == nil }
}

/// The changes of one turn of the engine, or of several if commits have failed.
package struct TurnChanges: Sendable {
    /// Ledger rows; an empty one is deleted.
    package var rows: [RuleID: [PathBytes: LedgerRow]] = [:]
    /// Read positions; nil is deleted.
    package var positions: [RuleID: [FileIdentity: ReadPosition?]] = [:]
    /// Due paths that are stored or deleted.
    package var due: [RuleID: [PathBytes: DueChange]] = [:]
    /// The last state of each changed job.
    package var jobs: [JobID: JobChange] = [:]
    package var attempts: [(job: JobID, record: AttemptRecord)] = []
    package var undos: [(changes: RecordedChanges, record: UndoRecord)] = []
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
        /// It runs, or waits for an attempt.
        case unfinished(OpenJob)
        /// It is finished in a state, with the outputs of all its steps; a failed one with the first job of the attempt
        /// with which it failed, unless no later success of its path finishes it.
        case ended(OpenJob, JobState, Outcome, failedWith: JobID? = nil)
        /// Its row is deleted.
        case deleted
    }

    package var fate: Fate
    /// Whether the row is new, or its event has changed; otherwise only its state is written.
    package var isNew: Bool

    package init(_ fate: Fate, isNew: Bool) { (self.fate, self.isNew) = (fate, isNew) }
}

/// The properties of a rule that the journal stores.
package struct RuleRecord: Sendable, Hashable {
    package var name: String
    /// The path that identifies a rule without a name, whose `name` is for display; nil for a rule with a name.
    package var path: String?
    /// The former names of the rule.
    package var formerly: [String]
    /// The paths that the rule matches, as a string that is equal for two rules only if they match the same paths.
    package var selection: String

    package init(name: String, path: String? = nil, formerly: [String] = [], selection: String) {
        (self.name, self.path, self.formerly, self.selection) = (name, path, formerly, selection)
    }
}

/// The stored state of a rule when it starts.
package enum RuleStart: Sendable, Hashable {
    /// The rule runs for the first time; nothing is stored.
    case fresh
    /// The stored state is complete as of the last run.
    case resumed
    /// The rule started for the first time then, and stopped before all existing files were recorded.
    case unfinished(since: Timestamp)
    /// The rule matches other paths than in its last run, which ended then: nothing is stored for those that are new
    /// to it.
    case reselected(since: Timestamp, from: String)
}

/// A mount point of watched files, which identifies their device after its number has changed.
package struct MountRecord: Sendable, Hashable {
    package var point: PathBytes
    /// The identity of the mounted directory.
    package var identity: FileIdentity

    package init(point: PathBytes, identity: FileIdentity) { (self.point, self.identity) = (point, identity) }
}

/// The undoable changes of one attempt at a job, and the result of their undo.
package struct RecordedChanges: Sendable, Hashable {
    package var job: JobID
    /// The rule's name.
    package var rule: String
    /// The number and the start time of the attempt.
    package var number: Int
    package var started: Timestamp
    /// The event of the job.
    package var event: FileEvent
    /// The changes in the order in which they were made.
    package var changes: [FileChange]
    /// The result of the undo; nil if there was none.
    package var undo: UndoRecord?

    package init(
        job: JobID, rule: String, number: Int, started: Timestamp, event: FileEvent, changes: [FileChange],
        undo: UndoRecord?
    ) {
        (self.job, self.rule, self.number, self.started) = (job, rule, number, started)
        (self.event, self.changes, self.undo) = (event, changes, undo)
    }

    /// Whether all changes have been undone.
    package var isUndone: Bool { undo?.reasons.allSatisfy { $0 == nil } ?? changes.isEmpty }
}

/// Whether all or some changes of a job have been undone.
package enum Undone: String, Sendable, Hashable {
    case all
    case part

    /// Creates the state; nil if nothing has been undone.
    package init?(_ attempts: [RecordedChanges]) {
        guard attempts.contains(where: { $0.undo?.reasons.contains { $0 == nil } ?? false }) else { return nil }
        self = attempts.allSatisfy(\.isUndone) ? .all : .part
    }
}

/// The result of undoing an attempt's changes.
package struct UndoRecord: Sendable, Hashable {
    package var time: Timestamp
    /// For each change, the reason why it was not undone; nil if it was.
    package var reasons: [String?]

    package init(time: Timestamp, reasons: [String?]) { (self.time, self.reasons) = (time, reasons) }
}

/// A job that finished before its action started, since `ready` has refused it permanently.
package struct Refusal: Sendable, Hashable {
    package var id: JobID
    /// The metadata of the file in the job.
    package var snapshot: Snapshot
    package var message: String

    package init(id: JobID, snapshot: Snapshot, message: String) {
        (self.id, self.snapshot, self.message) = (id, snapshot, message)
    }
}

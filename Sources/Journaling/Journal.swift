package import FileEvents
package import Reconciling
package import Rules

/// The record of what was accepted, what is to be done, and what came of it.
///
/// Its ledger has a view for each rule, by the rule's name. The journal is the
/// queue: an event is accepted when its jobs and the ledger's new snapshots are
/// committed together, and finished when its outcome is.
///
/// The engine calls from one thread. What a call changes is seen by the next one
/// at once, and outlives the program after ``secure(at:)``: once in each of the
/// engine's turns, for all that was accepted, leased and recorded in it. No action
/// begins before its lease is secured. Others see it after ``commit(at:)``, which
/// serves for several turns.
package protocol Journal: Ledger, Sendable {
    // MARK: Life

    /// Tells which rules run from now on, and what is known of each.
    ///
    /// Called before all else, and again when other rules run from then on. Former
    /// names of a rule are forgotten: what was known under them, and their open jobs,
    /// are the rule's now, also those that are running. Jobs of rules that don't run
    /// wait until they do.
    ///
    /// - Parameters:
    ///   - rules: The rules.
    ///   - isWatching: Whether what happens is looked at from now on. Else only their jobs are run: of a rule that
    ///     never was looked at it is the same as before when it is, and so is since when nobody has looked.
    ///   - now: The present.
    /// - Returns: What is known, by the rules' names.
    func begin(_ rules: [RuleRecord], isWatching: Bool, at now: Timestamp) -> [String: RuleStart]

    /// Notes that all that the roots of the rules held at the start has been compared, or taken as known.
    func noteStarted(at now: Timestamp)

    /// When an earlier run kept something last; nil when there was none.
    var lastKept: Timestamp? { get }

    /// The mount points that files of the rules lay below, when somebody noted them last.
    var mounts: [MountRecord] { get }

    /// Notes through which mount points the rules' roots are seen.
    func noteMounts(_ mounts: [MountRecord])

    /// Keeps everything that was accepted, leased and recorded since the last commit, in one transaction.
    ///
    /// - Returns: Nil when it is kept. A fault that may pass leaves everything to
    ///   the next call, which tries again; nothing is forgotten meanwhile.
    func commit(at now: Timestamp) -> JournalFault?

    /// Sees to it that everything that was accepted, leased and recorded until now outlives the program.
    ///
    /// - Returns: Nil when it does, else what ``commit(at:)`` returns.
    func secure(at now: Timestamp) -> JournalFault?

    /// Does the same as far as it needs no commit, for as long as one fails.
    func note(at now: Timestamp)

    /// Commits what is secured, so that others see it, unless the last commit has failed.
    ///
    /// Callable from any thread.
    func catchUp(at now: Timestamp)

    /// When what is secured has to be committed, so that others see it; nil when everything is.
    var commitDue: ContinuousClock.Instant? { get }

    // MARK: By hand

    /// Makes a pending job due at once, and a dead letter pending again as if it were new; leaves any other job alone.
    func retry(_ job: JobID, now: ContinuousClock.Instant)

    /// Ends a pending job as skipped, and forgets a dead letter; leaves any other job alone.
    func discard(_ job: JobID)

    /// The changes of a job's attempts, the last one first, but for those whose undoing is noted and not committed yet.
    func changes(of job: JobID) -> [KeptChanges]

    /// Commits what became of an attempt's changes that were to be taken back, together with the snapshots that this left.
    ///
    /// What the journal has never known of a rule is left out.
    func note(_ undo: UndoRecord, of changes: KeptChanges, _ ownWrites: [LedgerEntry])

    // MARK: Queue

    /// Commits jobs together with the snapshots that they rest on.
    ///
    /// A job whose rule and path have a pending job already takes that job's
    /// place: one run with the newer facts serves both. A file that was created
    /// and then modified before anyone looked is still `created`. A job that rests
    /// after a failed attempt is replaced by one that begins anew. Text that was
    /// added to a file is never given up: a job that has some stands for itself
    /// when the newer one can't take it over. A job that is alone is never merged,
    /// and waits until the older ones of its rule and path have ended.
    func accept(_ jobs: [Job], _ entries: [LedgerEntry], now: ContinuousClock.Instant)

    /// What the job tells that waits for the path; nil when none does.
    func pendingEvent(view: String, path: PathBytes) -> FileEvent?

    /// Takes jobs of a rule that are due, oldest first, and marks them running.
    ///
    /// - Parameters:
    ///   - rule: The rule's name.
    ///   - lot: How many to take.
    ///   - busy: Paths to pass over: a path has one action at a time, and a move waits for its old name too.
    ///   - now: The present.
    /// - Returns: The jobs, their attempts counted up; of a lot of one lane, fewer than it allows when no more are due.
    func lease(rule: String, lot: Lot, busy: Set<PathBytes>, now: ContinuousClock.Instant) -> [Job]

    /// Whether a job of a rule is due that could be leased.
    func hasDue(rule: String, busy: Set<PathBytes>, now: ContinuousClock.Instant) -> Bool

    /// Takes the pending jobs of certain paths, those that wait for others of them as well as those that are due.
    ///
    /// - Returns: The jobs in the order of the paths, their attempts counted up; none for a path that is busy or rests.
    func lease(rule: String, paths: [PathBytes], busy: Set<PathBytes>, now: ContinuousClock.Instant) -> [Job]

    /// Makes jobs due that wait, be it only one path's.
    func wake(rule: String, path: PathBytes?, now: ContinuousClock.Instant)

    /// The job of a path that `ready` has refused for good, for the content that the path has; nil when there is none.
    ///
    /// It is known as long as the job is, also to later runs. A job that is to be tried again is no such job any more.
    func refusal(rule: String, path: PathBytes, snapshot: Snapshot) -> Refusal?

    /// How many pending jobs wait for something that need not come soon.
    var held: Int { get }

    /// Commits how a leased job ended, together with the snapshots that its own writes left.
    ///
    /// A pending job of the same rule that rests on exactly such a snapshot, or
    /// on such an absence, came of those writes, and is dropped. A job that ends
    /// without having done its work is merged into a pending one of its path. What
    /// an own write does not say of a path, its checksum and how much of it has been
    /// delivered, stays as it is known. The checksum in the event of a job that has
    /// succeeded is noted as that of the content handled last.
    ///
    /// - Parameters:
    ///   - job: The job as it was leased, with the steps that have succeeded since.
    ///   - attempt: What is kept of the attempt; nil when the action did not begin.
    ///   - disposition: What becomes of the job.
    ///   - ownWrites: The snapshots that the action left.
    /// - Returns: The paths whose pending jobs were dropped.
    func record(
        _ job: Job, _ attempt: AttemptRecord?, _ disposition: Disposition, _ ownWrites: [LedgerEntry]
    ) -> [PathBytes]

    /// Notes the steps of a running job that have succeeded, so that a next attempt goes on after them.
    ///
    /// A job that has ended since is left alone.
    func note(_ steps: [Outcome], of job: JobID)

    /// How many jobs wait for rules that do not run, by the rule's name.
    var waiting: [String: Int] { get }

    /// When the first pending job that is not due yet becomes due.
    func nextDue(after now: ContinuousClock.Instant) -> ContinuousClock.Instant?

    /// How many pending jobs are not due yet.
    func resting(at now: ContinuousClock.Instant) -> Int

    /// The rules that have pending jobs.
    var pendingRules: Set<String> { get }

    var counts: JobCounts { get }

    /// How many jobs are pending of each rule that has any.
    var pendingCounts: [String: Int] { get }

    /// Which rules rest because a person wants that; kept like all else, if anything is.
    var pauses: Pauses { get }

    func notePauses(_ pauses: Pauses)
}

extension Journal {
    /// Tells which rules run and are watched for from now on.
    package func begin(_ rules: [RuleRecord], at now: Timestamp) -> [String: RuleStart] {
        begin(rules, isWatching: true, at: now)
    }
}

/// What becomes of a job after an attempt.
package enum Disposition: Sendable {
    case ended(JobState, Outcome)
    /// It is due again; `counts` says whether the attempt is spent.
    case again(at: ContinuousClock.Instant, Outcome, counts: Bool)
    /// It was leased too early: it is due later, and all else as if it had not been leased. Why it waits can be seen.
    case early(due: ContinuousClock.Instant, Waiting? = nil)
    /// The file changed before the action began: the job is dropped, the ledger
    /// forgets what it rested on, and the path settles again.
    case returned(at: ContinuousClock.Instant)
}

/// How many jobs stand where, since the journal was opened.
package struct JobCounts: Sendable, Hashable {
    package var pending = 0
    package var running = 0
    package var succeeded = 0
    package var skipped = 0
    package var dead = 0

    package init() {}

    /// Jobs that are not finished.
    package var open: Int { pending + running }
}

/// How many jobs are taken together.
package struct Lot: Sendable {
    /// The most of them.
    package var jobs: Int
    /// The most bytes that the files of several have together, as they were when they were accepted.
    package var bytes: UInt64
    /// How many such lots there is room for: what is due is shared among them.
    package var lanes: Int

    /// Whether they are taken together only because each of them is small.
    var isOfStrangers: Bool { bytes != .max }

    package init(jobs: Int, bytes: UInt64 = .max, lanes: Int = 1) {
        self.jobs = jobs
        self.bytes = bytes
        self.lanes = lanes
    }
}

extension Journal {
    package func lease(rule: String, limit: Int, busy: Set<PathBytes>, now: ContinuousClock.Instant) -> [Job] {
        lease(rule: rule, lot: Lot(jobs: limit), busy: busy, now: now)
    }
}

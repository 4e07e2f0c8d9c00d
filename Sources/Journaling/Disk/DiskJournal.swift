package import FileEvents
package import GRDB
package import Reconciling
package import Rules
import Settling
import Synchronization
import Storage

/// A journal in a file, which outlives the program, or in memory.
///
/// What is accepted, leased and recorded gathers in memory until ``commit(at:)``
/// writes it in one transaction; ``secure(at:)`` appends it to a log beside the file, by which the next start knows it as well. The jobs that are not finished are held in memory
/// as well as in the file; of the ledger only what has changed since the last commit.
///
/// One process at a time has it for its own. Others may read the file.
package final class DiskJournal: Journal {
    /// Nothing of it is used but under the lock: not the statements either, which are not for several threads.
    private struct Guarded: @unchecked Sendable {
        /// Nil after ``DiskJournal/close(at:)``.
        var state: DiskState?
    }

    private let guarded: Mutex<Guarded>
    private let clock: @Sendable () -> ContinuousClock.Instant

    /// Opens the file, or makes it with its folder, and takes in what an earlier run has left.
    ///
    /// - Parameters:
    ///   - path: Where the file lies.
    ///   - now: The present.
    ///   - isBrief: Whether it is closed again at once, so that others wait for that.
    ///   - retention: How much is kept of jobs that have ended.
    ///   - clock: The clock by which jobs are due; tests have their own.
    /// - Throws: When it can't be used; nothing of it has been changed then.
    package init(
        at path: PathBytes, now: Timestamp, isBrief: Bool = false,
        keeping retention: JournalRetention = JournalRetention(),
        clock: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) throws(JournalError) {
        let (path, lock) = try JournalFile.acquire(path, isBrief: isBrief)
        let state: DiskState
        do {
            let connection = try JournalFile.open(path, .journal)
            state = try DiskState(
                path, lock: lock, connection: connection, retention: retention, clocks: ClockPair(now, clock()))
            // Those that were missing are there by now, made by this process or by another user in between.
            try CompanionFile.check(of: path)
        } catch {
            throw JournalError(error, at: path)
        }
        guarded = Mutex(Guarded(state: state))
        self.clock = clock
    }

    /// Makes a journal in memory, which ends with the program; no lock is taken.
    ///
    /// - Parameters:
    ///   - path: The file that it begins as a copy of, of which nothing is ever written; nil, or one that is not there, for
    ///     a new journal.
    ///   - now: The present.
    ///   - clock: The clock by which jobs are due; tests have their own.
    /// - Throws: When the file can't be read, or is no journal.
    package init(
        inMemory path: PathBytes?, now: Timestamp,
        clock: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) throws(JournalError) {
        let path = try path.map { path throws(JournalError) in try JournalFile.check(path) }
        let name = path ?? ":memory:"
        do {
            // What has ended can be looked at in a file alone; what is known of it counts for a while here, too.
            let retention = path == nil ? JournalRetention(jobs: 10_000, bytes: 16 << 20) : JournalRetention()
            let state = try DiskState(
                name, lock: nil, connection: JournalFile.openInMemory(copying: path, .journal), retention: retention,
                clocks: ClockPair(now, clock()))
            guarded = Mutex(Guarded(state: state))
        } catch {
            throw JournalError(error, at: name)
        }
        self.clock = clock
    }

    /// Takes over a journal in memory, as the next start does after a kill: what it has secured, and nothing else.
    ///
    /// The other one is of no use any more.
    package init(
        afterKillOf other: DiskJournal, now: Timestamp, clock: @escaping @Sendable () -> ContinuousClock.Instant
    ) throws(JournalError) {
        let clocks = ClockPair(now, clock())
        let connection = other.guarded.withLock { guarded -> DatabaseQueue? in
            _ = guarded.state?.commit(clocks)
            defer { guarded.state = nil }
            return guarded.state?.lock == nil ? guarded.state?.connection : nil
        }
        guard let connection else { preconditionFailure("a journal in memory that is in use") }
        do {
            let state = try DiskState(
                ":memory:", lock: nil, connection: connection, retention: JournalRetention(), clocks: clocks)
            guarded = Mutex(Guarded(state: state))
        } catch {
            throw JournalError(error, at: ":memory:")
        }
        self.clock = clock
    }

    /// The process that runs with the journal of that name; nil if none does, 0 if it has not said its number.
    package static func holder(of path: PathBytes) -> Int32? {
        JournalLock.holder(of: JournalFile.resolve(path))
    }

    /// The control socket of the process that has the journal of that name; nil while it has named none.
    package static func control(of path: PathBytes) -> PathBytes? {
        JournalLock.control(of: JournalFile.resolve(path))
    }

    /// Names the control socket of this process to those who look for the instance that has the journal; nil for none.
    package func note(control socket: PathBytes?) { guarded.withLock { $0.state?.lock?.note(control: socket) } }

    /// Commits what is left, notes the clean stop, and lets others have the file.
    ///
    /// - Returns: Nil when it is kept; else the file is left as the last commit made it.
    @discardableResult
    package func close(at now: Timestamp) -> JournalFault? {
        guarded.withLock { guarded in
            let fault = guarded.state?.stop(ClockPair(now, clock()))
            guarded.state = nil
            return fault
        }
    }

    /// How many jobs were running when the run before was cut off.
    package var interrupted: Int { guarded.withLock { $0.state?.interrupted ?? 0 } }

    /// The jobs that could not be read when the journal was opened, and are dead letters since.
    package var unreadable: [JobID] { guarded.withLock { $0.state?.unreadable ?? [] } }

    /// Why there is no log ahead of the file, so that each turn of the engine is a commit; nil where there is one.
    package var aheadError: JournalError? { guarded.withLock { $0.state?.aheadError } }

    /// Whether what the run before noted last did not fit to the file, and was left alone.
    package var hasUnfitLog: Bool { guarded.withLock { $0.state?.hasUnfitLog ?? false } }

    /// Looks at the file by the journal's own connection, between two calls.
    ///
    /// - Throws: What the closure throws; `CancellationError` after ``close(at:)``.
    package func look<Answer: Sendable>(_ body: (Database) throws -> Answer) throws -> Answer {
        try guarded.withLock { guarded in
            // What is secured is to be seen, too.
            guarded.state?.catchUp(ClockPair(DiskProbe.now(), clock()))
            guard let state = guarded.state else { throw CancellationError() }
            return try state.look(body)
        }
    }

    // MARK: Life

    package func begin(_ rules: [RuleRecord], isWatching: Bool, at now: Timestamp) -> [String: RuleStart] {
        guarded.withLock { $0.state?.begin(rules, isWatching: isWatching, at: now) ?? [:] }
    }

    package func noteStarted(at now: Timestamp) { guarded.withLock { $0.state?.rules.noteStarted() } }

    package var lastKept: Timestamp? { guarded.withLock { $0.state.map { Timestamp(columnValue: $0.kept) } } }

    package var mounts: [MountRecord] { guarded.withLock { $0.state?.mounts.records ?? [] } }

    package func noteMounts(_ mounts: [MountRecord]) { guarded.withLock { $0.state?.note(mounts) } }

    package func commit(at now: Timestamp) -> JournalFault? {
        guarded.withLock { $0.state?.commit(ClockPair(now, clock())) }
    }

    package func secure(at now: Timestamp) -> JournalFault? {
        guarded.withLock { $0.state?.secure(ClockPair(now, clock())) }
    }

    package func note(at now: Timestamp) {
        guarded.withLock { _ = $0.state?.note(ClockPair(now, clock())) }
    }

    package func catchUp(at now: Timestamp) {
        guarded.withLock { $0.state?.catchUp(ClockPair(now, clock())) }
    }

    package var commitDue: ContinuousClock.Instant? { guarded.withLock { $0.state?.commitDue } }

    // MARK: By hand

    package func retry(_ job: JobID, now: ContinuousClock.Instant) {
        guarded.withLock { $0.state?.retry(job, due: now) }
    }

    package func discard(_ job: JobID) { guarded.withLock { $0.state?.discard(job) } }

    package func changes(of job: JobID) -> [KeptChanges] { guarded.withLock { $0.state?.changes(of: job) ?? [] } }

    package func note(_ undo: UndoRecord, of changes: KeptChanges, _ ownWrites: [LedgerEntry]) {
        guarded.withLock { $0.state?.note(undo, of: changes, ownWrites) }
    }

    // MARK: Ledger

    package func snapshot(view: String, path: PathBytes) -> Snapshot? {
        guarded.withLock { $0.state?.queue.files.known(view, path) }
    }

    package func knows(view: String, path: PathBytes) -> Bool {
        guarded.withLock { $0.state?.queue.files.knows(view, path) ?? false }
    }

    package func paths(view: String, identity: FileIdentity) -> [PathBytes] {
        guarded.withLock { $0.state?.queue.files.paths(view, of: identity) ?? [] }
    }

    package func visit(view: String, inside folder: PathBytes, _ body: (PathBytes, Snapshot) -> Void) {
        // Part by part, so that a million files are never in memory, nor the lock held while somebody looks at the disk.
        var last: PathBytes?
        while true {
            let (part, changed) = guarded.withLock { guarded -> ([(path: PathBytes, Snapshot)], Set<PathBytes>) in
                guard let files = guarded.state?.queue.files else { return ([], []) }
                let part = files.part(view, inside: folder, after: last)
                return (part, Set(part.lazy.map(\.path).filter { files.isChanged(view, $0) }))
            }
            guard let end = part.last else { break }
            for (path, snapshot) in part where path != folder && !changed.contains(path) { body(path, snapshot) }
            last = end.path
        }
        let changed = guarded.withLock { $0.state?.queue.files.changes[view]?.entries ?? [:] }
        for case (let path, .some(let snapshot)) in changed where path != folder && path.isInside(folder) {
            body(path, snapshot)
        }
        if let snapshot = snapshot(view: view, path: folder) { body(folder, snapshot) }
    }

    package func pendingEvent(view: String, path: PathBytes) -> FileEvent? {
        guarded.withLock { $0.state?.queue.pending(view, path)?.event }
    }

    package func hasPending(view: String, path: PathBytes) -> Bool {
        guarded.withLock { $0.state?.queue.hasPending(view, path) ?? false }
    }

    // MARK: Queue

    package func accept(_ jobs: [Job], _ entries: [LedgerEntry], now: ContinuousClock.Instant) {
        guarded.withLock { $0.state?.queue.accept(jobs, entries, now: now) }
    }

    package func lease(rule: String, lot: Lot, busy: Set<PathBytes>, now: ContinuousClock.Instant) -> [Job] {
        guarded.withLock { $0.state?.queue.lease(rule: rule, lot: lot, busy: busy, now: now) ?? [] }
    }

    package func hasDue(rule: String, busy: Set<PathBytes>, now: ContinuousClock.Instant) -> Bool {
        guarded.withLock { $0.state?.queue.hasDue(rule: rule, busy: busy, now: now) ?? false }
    }

    package func lease(rule: String, paths: [PathBytes], busy: Set<PathBytes>, now: ContinuousClock.Instant) -> [Job] {
        guarded.withLock { $0.state?.queue.lease(rule: rule, paths: paths, busy: busy, now: now) ?? [] }
    }

    package func wake(rule: String, path: PathBytes?, now: ContinuousClock.Instant) {
        guarded.withLock { $0.state?.queue.wake(rule: rule, path: path, now: now) }
    }

    package func refusal(rule: String, path: PathBytes, snapshot: Snapshot) -> Refusal? {
        guarded.withLock { $0.state?.refusal(rule, path, snapshot) }
    }

    package var held: Int { guarded.withLock { $0.state?.queue.held ?? 0 } }

    package func record(
        _ job: Job, _ attempt: AttemptRecord?, _ disposition: Disposition, _ ownWrites: [LedgerEntry]
    ) -> [PathBytes] {
        guarded.withLock { $0.state?.queue.record(job, attempt, disposition, ownWrites) ?? [] }
    }

    package func note(_ steps: [Outcome], of job: JobID) {
        guarded.withLock { $0.state?.queue.note(steps, of: job) }
    }

    package var waiting: [String: Int] {
        guarded.withLock { $0.state?.queue.waiting ?? [:] }
    }

    package func nextDue(after now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        guarded.withLock { $0.state?.queue.nextDue(after: now) }
    }

    package func resting(at now: ContinuousClock.Instant) -> Int {
        guarded.withLock { $0.state?.queue.resting(at: now) ?? 0 }
    }

    package var pendingRules: Set<String> { guarded.withLock { Set(($0.state?.queue.lanes ?? [:]).keys) } }

    package var counts: JobCounts { guarded.withLock { $0.state?.queue.counts ?? JobCounts() } }

    package var pendingCounts: [String: Int] { guarded.withLock { $0.state?.queue.pendingCounts ?? [:] } }

    package var pauses: Pauses { guarded.withLock { $0.state?.pauses ?? Pauses() } }

    package func notePauses(_ pauses: Pauses) { guarded.withLock { $0.state?.pauses = pauses } }
}

package import FileEvents
package import GRDB
package import Records
package import Rules
import Synchronization
package import System

/// The store of the engine, in an SQLite file or in memory: the ledger, the unfinished jobs, and the history of
/// finished ones.
///
/// One process at a time has the file open for writing; others may read it. The engine calls the store from one
/// thread and maintains the state of the run itself. It reads the state left by an earlier run, and commits the
/// changes of each turn in one transaction. Until then a call returns the last committed state.
package final class DiskStore: Journal {
    /// The state, which is used only under the lock, since the statements are not thread-safe.
    private struct Guarded: @unchecked Sendable {
        /// Nil after ``DiskStore/close(at:)``.
        var state: StoreState?
    }

    private let guarded: Mutex<Guarded>
    private let clock: @Sendable () -> ContinuousClock.Instant

    /// Opens a file, or creates it with its directory.
    ///
    /// - Parameters:
    ///   - path: The path of the file.
    ///   - now: The current time.
    ///   - isBrief: Whether it is closed again at once, so that other processes wait for it.
    ///   - retention: The limits of the stored history.
    ///   - clock: The clock by which jobs are due.
    /// - Throws: The reason why the file cannot be used; it is then unchanged.
    package init(
        at path: PathBytes, now: Timestamp, isBrief: Bool = false,
        keeping retention: JournalRetention = JournalRetention(),
        clock: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) throws(JournalError) {
        let (path, lock) = try JournalFile.acquire(path, isBrief: isBrief)
        self.clock = clock
        guarded = try Self.guarded(path) {
            let connection = try JournalFile.open(path)
            let state = try StoreState(path, lock, connection, retention, ClockPair(now, clock()))
            // The files next to it may have been created since the first check.
            try CompanionFile.check(of: path)
            return state
        }
    }

    /// Creates a store in memory, without a lock.
    ///
    /// - Parameters:
    ///   - path: The file to copy, which is never written; nil, or a file that does not exist, for an empty store.
    ///   - now: The current time.
    ///   - clock: The clock by which jobs are due.
    /// - Throws: The reason why the file cannot be read.
    package init(
        inMemory path: PathBytes?, now: Timestamp, clock: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) throws(JournalError) {
        let path = try path.map { path throws(JournalError) in try JournalFile.check(path) }
        let name = path ?? Self.memory
        self.clock = clock
        guarded = try Self.guarded(name) {
            let connection = try JournalFile.openInMemory(copying: path)
            // Without a file, the history occupies memory.
            let retention = path == nil ? JournalRetention(jobs: 10_000, bytes: 16 << 20) : JournalRetention()
            return try StoreState(name, nil, connection, retention, ClockPair(now, clock()))
        }
    }

    /// Takes over a store in memory, as the next run does after a kill: uncommitted changes are lost.
    ///
    /// The other instance is empty afterwards.
    package init(
        afterKillOf other: DiskStore, now: Timestamp, clock: @escaping @Sendable () -> ContinuousClock.Instant
    ) throws(JournalError) {
        let connection = other.guarded.withLock { guarded -> DatabaseQueue? in
            defer { guarded.state = nil }
            guarded.state?.tables.transaction.endReading()
            return guarded.state?.lock == nil ? guarded.state?.connection : nil
        }
        guard let connection else { preconditionFailure("a store in memory that is open") }
        self.clock = clock
        guarded = try Self.guarded(Self.memory) {
            try StoreState(Self.memory, nil, connection, JournalRetention(), ClockPair(now, clock()))
        }
    }

    private static func guarded(_ path: PathBytes, _ open: () throws -> StoreState) throws(JournalError) -> Mutex<
        Guarded
    > {
        do {
            return try Mutex(Guarded(state: open()))
        } catch {
            throw JournalError(error, at: path)
        }
    }

    private static let memory: PathBytes = ":memory:"

    /// Returns the process that has the file open for writing; nil if none does, 0 if its id cannot be read.
    package static func holder(of path: PathBytes) -> Int32? { JournalLock.holder(of: JournalFile.resolve(path)) }

    /// Returns the control socket of the process that has the file open for writing; nil if it has none.
    package static func control(of path: PathBytes) -> PathBytes? { JournalLock.control(of: JournalFile.resolve(path)) }

    /// Records the control socket of this process, by which others find it; nil for none.
    package func note(control socket: PathBytes?) { access { $0.lock?.record(control: socket) } }

    /// Records the clean stop, and closes the file.
    ///
    /// - Returns: Nil on success; after an error the file is in the state of the last commit.
    @discardableResult
    package func close(at now: Timestamp) -> StorageError? {
        guarded.withLock { guarded in
            defer { guarded.state = nil }
            return guarded.state?.stop(ClockPair(now, clock()))
        }
    }

    /// The number of jobs that were running when the last run was interrupted.
    package var interrupted: Int { access { $0.interrupted } ?? 0 }

    /// The jobs whose rows could not be read at opening, and that have since failed.
    package var unreadable: [JobID] { access { $0.unreadable } ?? [] }

    /// Queries the file on the connection of the store, between two calls.
    ///
    /// - Throws: The error of the closure; `CancellationError` after ``close(at:)``.
    package func query<Answer: Sendable>(_ body: (Database) throws -> Answer) throws -> Answer {
        try guarded.withLock { guarded in
            guard let state = guarded.state else { throw CancellationError() }
            return try state.access(body)
        }
    }

    private func access<Answer: Sendable>(_ body: (StoreState) -> Answer) -> Answer? {
        guarded.withLock { guarded in
            guard let state = guarded.state else { return nil }
            return body(state)
        }
    }

    /// Reads what was committed; returns nil after an error, which the next commit returns.
    private func read<Answer: Sendable>(_ body: (StoreState) throws -> Answer) -> Answer? {
        access { state in state.tables.transaction.read { try body(state) } } ?? nil
    }

    // MARK: LedgerStore

    package func row(of rule: RuleID, at path: PathBytes) -> LedgerRow? {
        read { try $0.tables.ledger.row(of: rule, at: path) } ?? nil
    }

    package func paths(of rule: RuleID, handling identity: FileIdentity, limit: Int) -> [PathBytes] {
        read { try $0.tables.ledger.paths(of: rule, handling: identity, limit: limit) } ?? []
    }

    package func rows(of rule: RuleID, below directory: PathBytes, after last: PathBytes?) -> [(PathBytes, LedgerRow)] {
        read { try $0.tables.ledger.rows(of: rule, below: directory, after: last) } ?? []
    }

    // MARK: State of the engine

    package func register(_ rules: [RuleRecord], isWatching: Bool, at now: Timestamp) -> [StoredRule] {
        access { $0.register(rules, isWatching: isWatching, at: now) } ?? []
    }

    package func currentName(of rule: String) -> String {
        access { $0.rules.owner(ofJobsUnder: rule) } ?? rule
    }

    package func id(of rule: String) -> RuleID? { access { $0.rules.rows[rule].map { RuleID($0.id) } } ?? nil }

    package var stored: StoredState { access { $0.stored() } ?? StoredState() }

    package func unfinishedJobs(of rule: RuleID, at clocks: ClockPair) -> [OpenJob] {
        read { try $0.unfinishedJobs(of: rule, at: clocks) } ?? []
    }

    package func positions(of rule: RuleID) -> [FileIdentity: ReadPosition] {
        read { try $0.tables.ledger.positions(of: rule) } ?? [:]
    }

    package func duePaths(of rule: RuleID) -> [StoredDuePath] { read { try $0.tables.ledger.duePaths(of: rule) } ?? [] }

    package func knownFiles(of rules: [RuleID]) -> Int {
        let ids = rules.map { "\($0.number)" }.joined(separator: ", ")
        let sql = "SELECT count(DISTINCT path) FROM ledger WHERE rule IN (\(ids)) AND type IS NOT NULL"
        return (try? query { try Int.fetchOne($0, sql: sql) }).flatMap(\.self) ?? 0
    }

    package func job(_ id: JobID, at clocks: ClockPair) -> (state: JobState, job: OpenJob)? {
        read { state in
            try state.tables.jobs.job(id).map { (state: $0.state, job: state.openJob($0, at: clocks)) }
        } ?? nil
    }

    package func changes(of id: JobID) -> [RecordedChanges] { read { try $0.tables.attempts.changes(of: id) } ?? [] }

    package func refusal(rule: String, path: PathBytes, snapshot: Snapshot) -> Refusal? {
        read { state in
            try state.rules.storedNames(of: rule).flatMap { try state.tables.jobs.refusals(rule: $0, path: path) }
                .first { $0.snapshot.hasSameContent(as: snapshot) }
        } ?? nil
    }

    package func maker(of output: PathBytes) -> OutputMaker? {
        read { state in
            try state.tables.ledger.maker(of: output).flatMap { row in
                state.rules.name(of: row.rule).map { OutputMaker(rule: $0, source: row.source) }
            }
        } ?? nil
    }

    package func record(_ outputs: [PathBytes], of maker: OutputMaker) {
        access { state in
            guard let rule = state.rules.rows[maker.rule] else { return }
            try? state.access { _ in
                try state.tables.transaction.write {
                    for output in outputs {
                        try state.tables.ledger.write(output, rule: rule.id, source: maker.source)
                    }
                }
            }
        }
    }

    package func commit(_ changes: TurnChanges, at clocks: ClockPair) -> StorageError? {
        access { $0.commit(changes, clocks) } ?? nil
    }
}

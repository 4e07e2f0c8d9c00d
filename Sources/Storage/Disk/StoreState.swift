import FileEvents
import GRDB
import Records
import Rules
import System

/// The prepared statements of the journal's connection.
struct StoreTables {
    var ledger: LedgerTable
    let jobs: JobTable
    let failed: FailedJobs
    let attempts: AttemptTable
    let history: HistoryPruning
    let stateValue: SQLStatement
    let transaction: StoreTransaction
}

/// The open file of a ``DiskStore``, and its state in memory.
///
/// Used under the lock of the store.
final class StoreState {
    /// The part of the state in memory that the last commit stored.
    struct Committed {
        /// The table `state`.
        var values: [String: Int64]
        /// The difference of the clocks when due times were written.
        var clockOffset: ClockOffset
        var pauses: Pauses
    }

    let path: PathBytes
    /// The identity of the file, by which its removal is detected.
    let identity: FileIdentity?
    var tables: StoreTables
    /// The checkpoint; nil for a store in memory.
    let checkpoint: LogCheckpoint?
    let errors: ReadErrors
    var rules: StoredRules
    var mounts: StoredMounts
    var pauses: Pauses
    var committed: Committed
    /// The number of this run, counted from 1.
    let run: Int64
    /// The time of the last commit of an earlier run, or up to a second before it.
    let lastCommit: Int64?
    /// The number of jobs that were running when the last run was interrupted.
    private(set) var interrupted = 0
    /// The jobs whose rows were unreadable at opening, and that have since failed.
    private(set) var unreadable: [JobID] = []
    /// Whether rules run and their files are watched.
    var isWatching = false
    /// Whether the clean stop is to be recorded.
    var isStopping = false
    /// The error after which nothing more is read or written.
    var failure: StorageError?
    /// Declared after the statements, so that it outlives them.
    let connection: DatabaseQueue
    /// Declared last, so that the lock is released after the connection is closed; nil for a store in memory.
    let lock: JournalLock?

    /// The busy timeout of a commit, during which the engine does not watch.
    private static let turnTimeout = Duration.milliseconds(250)
    /// The busy timeout of the last commit.
    private static let lastTimeout = Duration.seconds(5)

    init(
        _ path: PathBytes, _ lock: JournalLock?, _ connection: DatabaseQueue, _ retention: JournalRetention,
        _ clocks: ClockPair
    ) throws {
        (self.path, self.lock, self.connection) = (path, lock, connection)
        identity = KernelFileSystem().identity(of: path)
        let errors = ReadErrors()
        self.errors = errors
        let kept = lock == nil ? nil : KeptFiles(journal: path)
        (tables, rules, mounts, pauses, run, lastCommit, committed) = try connection.writeWithoutTransaction {
            database in
            let rows = try SQLStatement("SELECT name, value FROM state", in: database).rows {
                ($0.text(0), $0.integer(1) as Int64)
            }
            let values = Dictionary(rows) { $1 }
            let (run, lastCommit) = ((values["run"] ?? 0) + 1, values["last_commit"])
            let pauses = try Pauses(database)
            let offset = ClockOffset(values, lastCommit: lastCommit ?? clocks.wall, clocks)
            let tables = try StoreTables(
                ledger: LedgerTable(database, run: run, errors), jobs: JobTable(database),
                failed: FailedJobs(database), attempts: AttemptTable(database),
                history: HistoryPruning(database, retention, kept),
                stateValue: SQLStatement("INSERT OR REPLACE INTO state VALUES (?, ?)", in: database),
                transaction: StoreTransaction(database, errors))
            return try (
                tables, StoredRules(database), StoredMounts(database), pauses, run, lastCommit,
                Committed(values: values, clockOffset: offset, pauses: pauses)
            )
        }
        checkpoint = lock == nil ? nil : connection.writeWithoutTransaction { LogCheckpoint($0, of: path) }
        try checkJobs(clocks)
        try writeFreeingSpace(TurnChanges(), clocks)
        setTimeout(Self.turnTimeout)
    }

    /// Counts the jobs that were running, and marks those with unreadable rows as failed.
    private func checkJobs(_ clocks: ClockPair) throws {
        let unreadable: [[UInt8]]
        (interrupted, unreadable) = try tables.jobs.checkOpenJobs()
        guard !unreadable.isEmpty else { return }
        try access { _ in
            try tables.transaction.write { for id in unreadable { try tables.jobs.bury(id, at: clocks.wall) } }
        }
        self.unreadable = unreadable.map { JobID(String(decoding: $0, as: UTF8.self)) }
    }

    /// Calls the closure with the connection, outside of the read transaction.
    func access<Result>(_ body: (Database) throws -> Result) rethrows -> Result {
        tables.transaction.endReading()
        return try connection.writeWithoutTransaction(body)
    }

    private func setTimeout(_ timeout: Duration) {
        let milliseconds = timeout.columnValue / 1_000_000
        try? access { try $0.execute(sql: "PRAGMA busy_timeout = \(milliseconds)") }
    }

    /// Records the clean stop, and moves the log into the file.
    func stop(_ clocks: ClockPair) -> StorageError? {
        isStopping = true
        setTimeout(Self.lastTimeout)
        if let failure = commit(TurnChanges(), clocks) { return failure }
        checkpoint?.close()
        // After an error the next run reads the log.
        try? access { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
        return nil
    }

    /// A number that is not exceeded by any job.
    var number: UInt64 { UInt64(bitPattern: committed.values["number"] ?? 0) }

    // MARK: Rules and mount points

    func register(_ records: [RuleRecord], isWatching: Bool, at now: Timestamp) -> [StoredRule] {
        let time = now.columnValue
        // In a run that continues with other rules, everything has been compared until now.
        let stored = rules.register(
            records, now: isWatching ? time : nil, lastCommit: self.isWatching ? time : lastCommit ?? time)
        self.isWatching = isWatching
        mounts.findDevices()
        tables.ledger.devices = mounts.devices
        return stored
    }

    func stored() -> StoredState {
        var stored = StoredState()
        stored.lastCommit = lastCommit.map { Timestamp(columnValue: $0) }
        (stored.mounts, stored.pauses, stored.number) = (mounts.records, pauses, number)
        do {
            try access { database in
                let sql = "SELECT rule, count(*) FROM jobs WHERE state IN ('pending', 'running') GROUP BY rule"
                let rows = try SQLStatement(sql, in: database).rows { ($0.text(0), $0.integer(1) as Int) }
                for (rule, count) in rows {
                    let name = rules.owner(ofJobsUnder: rule)
                    if !rules.isRunning(name) { stored.unloaded[name, default: 0] += count }
                }
            }
        } catch {
            errors.record(error)
        }
        return stored
    }

    // MARK: Jobs

    func unfinishedJobs(of rule: RuleID, at clocks: ClockPair) throws -> [OpenJob] {
        guard let name = rules.name(of: rule.number) else { return [] }
        let rows = try rules.storedNames(of: name).flatMap { try tables.jobs.openJobs(of: $0) }
        return rows.sorted { $0.job.number < $1.job.number }.map { openJob($0, at: clocks) }
    }

    /// Returns the job of a row, with the current name of its rule and the current device numbers.
    func openJob(_ row: JobTable.Row, at clocks: ClockPair) -> OpenJob {
        var job = row.job
        job.rule = rules.owner(ofJobsUnder: job.rule)
        job.event.map(mounts.devices)
        job.event.snapshot.mount = 0
        job.event.before?.mount = 0
        let time = row.due.map { clocks.instant(of: $0 &+ committed.clockOffset.shift(to: clocks)) }
        var due = time ?? clocks.instant
        // The condition for which the job waits may have been met in the meantime.
        if job.waiting != nil { due = min(due, clocks.instant) }
        let isRunning = row.state == .running
        guard var offer = row.offer else {
            job.schedule = Job.Schedule(due: due, isRunning: isRunning)
            return OpenJob(job, nil, leased: isRunning ? time : nil)
        }
        (offer.number, offer.event, offer.state) = (job.number, job.event, isRunning ? .leased : .retrying(due))
        (offer.hasRun, offer.hasSteps) = (job.attempt > 0, !job.steps.isEmpty)
        offer.left?.identity.map(mounts.devices)
        offer.left?.mount = 0
        return OpenJob(job, offer, leased: isRunning ? time : nil)
    }
}

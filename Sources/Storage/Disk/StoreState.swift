import FileEvents
import GRDB
import Reconciling
import Rules
import System

/// The open file of a ``DiskStore``, and its state in memory.
///
/// Used under the lock of the store.
final class StoreState {
    private struct Parts {
        let ledger: LedgerTable
        let due: DuePathTable
        let jobs: JobTable
        let attempts: AttemptTable
        let history: HistoryPruning
        let fact: SQLStatement
        let reading: ReadTransaction
        let transaction: WriteTransaction
        let rules: StoredRules
        let mounts: StoredMounts
        let pauses: Pauses
        let facts: [String: Int64]
    }

    let path: PathBytes
    /// The identity of the file, by which its removal is detected.
    let identity: FileIdentity?
    var ledger: LedgerTable
    let due: DuePathTable
    let jobs: JobTable
    let attempts: AttemptTable
    let history: HistoryPruning
    let fact: SQLStatement
    let reading: ReadTransaction
    let transaction: WriteTransaction
    /// The checkpoint; nil for a store in memory.
    let checkpoint: LogCheckpoint?
    let errors: ReadErrors
    var rules: StoredRules
    /// The ids of all rules.
    var ruleIDs: Set<Int64>
    var mounts: StoredMounts
    var pauses: Pauses
    var storedPauses: Pauses
    /// The number of this run, counted from 1.
    let run: Int64
    /// The time of the last commit of an earlier run, or up to a second before it.
    let lastCommit: Int64?
    /// The table `facts` as it was last committed.
    var facts: [String: Int64]
    /// The difference of the clocks when due times were written.
    var clockOffset: ClockOffset
    /// Whether rules run and their files are watched.
    var isWatching = false
    /// Whether the clean stop is to be recorded.
    var isStopping = false
    /// The error after which nothing more is read or written.
    var fault: StorageError?
    private(set) var interrupted = 0
    private(set) var unreadable: [JobID] = []
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
        identity = DiskProbe.identity(of: path)
        let errors = ReadErrors()
        self.errors = errors
        let parts = try connection.writeWithoutTransaction { try Self.parts($0, retention, errors) }
        (ledger, due, jobs, attempts) = (parts.ledger, parts.due, parts.jobs, parts.attempts)
        (history, fact, reading, transaction) = (parts.history, parts.fact, parts.reading, parts.transaction)
        checkpoint = lock == nil ? nil : connection.writeWithoutTransaction { LogCheckpoint($0, of: path) }
        (rules, mounts, pauses, storedPauses) = (parts.rules, parts.mounts, parts.pauses, parts.pauses)
        ruleIDs = Set(parts.rules.ids.values)
        run = Self.run(after: parts.facts)
        lastCommit = parts.facts["kept"]
        facts = parts.facts
        clockOffset = ClockOffset(parts.facts, kept: lastCommit ?? clocks.wall, clocks)
        try checkJobs(clocks)
        try writeMakingRoom(TurnChanges(), clocks)
        setTimeout(Self.turnTimeout)
    }

    private static func parts(
        _ database: Database, _ retention: JournalRetention, _ errors: ReadErrors
    ) throws -> Parts {
        var facts: [String: Int64] = [:]
        try SQLStatement("SELECT name, value FROM facts", in: database).each { facts[$0.text(0)] = $0.integer(1) }
        return try Parts(
            ledger: LedgerTable(database, run: run(after: facts), errors), due: DuePathTable(database, errors),
            jobs: JobTable(database), attempts: AttemptTable(database),
            history: HistoryPruning(database, retention),
            fact: SQLStatement("INSERT OR REPLACE INTO facts VALUES (?, ?)", in: database),
            reading: ReadTransaction(database, errors), transaction: WriteTransaction(database),
            rules: StoredRules(database), mounts: StoredMounts(database), pauses: Pauses(database), facts: facts)
    }

    private static func run(after facts: [String: Int64]) -> Int64 { (facts["run"] ?? 0) + 1 }

    /// Counts the jobs that were running, and marks those with unreadable rows as failed.
    private func checkJobs(_ clocks: ClockPair) throws {
        let (rows, unreadable) = try jobs.openJobs()
        interrupted = rows.count { $0.state == .running }
        guard !unreadable.isEmpty else { return }
        try access { _ in
            try transaction.run { for id in unreadable { try jobs.bury(id, at: clocks.wall) } }
        }
        self.unreadable = unreadable.map { JobID(String(decoding: $0, as: UTF8.self)) }
    }

    /// Calls the closure with the connection, outside of the read transaction.
    func access<Result>(_ body: (Database) throws -> Result) rethrows -> Result {
        reading.end()
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
        if let fault = commit(TurnChanges(), clocks) { return fault }
        checkpoint?.close()
        // After an error the next run reads the log.
        try? access { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
        return nil
    }

    /// A number that is not exceeded by any job.
    var number: UInt64 { UInt64(bitPattern: facts["number"] ?? 0) }

    // MARK: Rules and mount points

    func begin(_ records: [RuleRecord], isWatching: Bool, at now: Timestamp) -> [StoredRule] {
        let time = now.columnValue
        // In a run that continues with other rules, everything has been compared until now.
        let starts = rules.begin(
            records, now: isWatching ? time : nil, kept: self.isWatching ? time : lastCommit ?? time)
        self.isWatching = isWatching
        mounts.look()
        ledger.devices = mounts.devices
        let ids = rules.ids
        ruleIDs = Set(ids.values)
        return records.compactMap { record in
            guard let id = ids[record.name], let start = starts[record.name] else { return nil }
            return StoredRule(id: RuleID(id), start: start)
        }
    }

    func stored() -> StoredState {
        var unloaded: [String: Int] = [:]
        do {
            try access { database in
                let sql = "SELECT rule, count(*) FROM jobs WHERE state IN ('pending', 'running') GROUP BY rule"
                try SQLStatement(sql, in: database).each { row in
                    let name = rules.owner(ofJobsUnder: row.text(0))
                    if !rules.isRunning(name) { unloaded[name, default: 0] += Int(row.integer(1)) }
                }
            }
        } catch {
            errors.record(error)
        }
        return StoredState(
            lastCommit: lastCommit.map { Timestamp(columnValue: $0) }, mounts: mounts.records, pauses: pauses,
            unloaded: unloaded, number: number)
    }

    // MARK: Jobs

    func unfinishedJobs(of rule: RuleID, at clocks: ClockPair) throws -> [StoredJob] {
        guard let name = rules.name(of: rule.number) else { return [] }
        let rows = try rules.storedNames(of: name).flatMap { try jobs.openJobs(of: $0) }
        return rows.sorted { $0.position < $1.position }.map { job($0, at: clocks) }
    }

    func job(_ id: JobID, at clocks: ClockPair) throws -> StoredJob? {
        try jobs.job(id).map { job($0, at: clocks) }
    }

    /// Returns the job of a row, with the current name of its rule and the current device numbers.
    private func job(_ row: JobTable.Row, at clocks: ClockPair) -> StoredJob {
        var job = row.job
        job.rule = rules.owner(ofJobsUnder: job.rule)
        job.event.map(mounts.devices)
        job.event.snapshot.mount = 0
        job.event.before?.mount = 0
        var due = row.due.map { clocks.instant(of: $0 &+ clockOffset.shift(to: clocks)) }
        // The condition for which the job waits may have been met in the meantime.
        if row.state == .pending, job.waiting != nil { due = due.map { min($0, clocks.instant) } }
        return StoredJob(job, row.state, offer(row, job), number: row.position, due: due)
    }

    private func offer(_ row: JobTable.Row, _ job: Job) -> Offer? {
        guard var offer = row.offer else { return nil }
        offer.number = row.position
        offer.event = job.event
        offer.left?.identity.map(mounts.devices)
        offer.left?.mount = 0
        return offer
    }

    func refusal(_ rule: String, _ path: PathBytes, _ snapshot: Snapshot) throws -> Refusal? {
        for name in rules.storedNames(of: rule) {
            let refusals = try jobs.refusals(rule: name, path: path)
            if let refusal = refusals.first(where: { $0.snapshot.hasSameContent(as: snapshot) }) { return refusal }
        }
        return nil
    }
}

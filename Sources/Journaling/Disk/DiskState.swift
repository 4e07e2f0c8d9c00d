import FileEvents
import GRDB
import PluginProtocol
import Reconciling
import Rules
import Settling
import Storage

/// All that a journal on disk holds; it belongs to whoever holds the journal's lock.
struct DiskState {
    let path: PathBytes
    var queue: JobQueue<DiskLedger>
    let jobs: JobTable
    let attempts: AttemptTable
    let history: HistoryPruning
    var rules: RuleBook
    var mounts: MountBook
    var pauses: Pauses
    /// What of it the file tells.
    private var keptPauses: Pauses
    /// The number of this run, counted from 1.
    let run: Int64
    /// When something was committed last, before this run.
    let kept: Int64
    /// Whether rules run and what happens is looked at: else nobody knows it up to now.
    var isWatching = false
    /// How the clocks stood to each other when due times were written last.
    private var clockOffset: ClockOffset
    /// Which file it is, by which it is missed when somebody removes it.
    private let identity: FileIdentity?
    /// How many jobs were running when the run before was cut off.
    private(set) var interrupted = 0
    /// The jobs whose rows made no sense, and that are dead letters since.
    private(set) var unreadable: [JobID] = []
    /// Why nothing of the journal can be relied on any more.
    private var fault: JournalFault?
    /// Whether a clean stop is to be noted.
    private var isStopping = false
    private let fact: SQLStatement
    /// What the last commit has noted of a clean stop; nil before the first.
    private var notedClean: Bool?
    private let transaction: WriteTransaction
    /// What tells of the last moments before the database does; nil where there is none.
    private let ahead: AheadLog?
    /// Why there is none.
    let aheadError: JournalError?
    /// Whether what the run before noted last could not be taken in.
    let hasUnfitLog: Bool
    /// Whether the last commit has failed.
    private var isFailing = false
    /// When the database has to catch up; nil while it has everything that was secured.
    private(set) var commitDue: ContinuousClock.Instant?
    /// Behind the statements, so that it is there while they go.
    let connection: DatabaseQueue
    /// Last, so that the journal is free when the connection is closed.
    ///
    /// Nil for a journal in memory, which nobody else has.
    let lock: JournalLock?

    /// Opens the file, and takes in what an earlier run has left.
    init(
        _ path: PathBytes, lock: JournalLock?, connection: DatabaseQueue, retention: JournalRetention,
        clocks: ClockPair
    ) throws {
        self.path = path
        self.lock = lock
        self.connection = connection
        identity = DiskProbe.identity(of: path)
        let parts = try connection.writeWithoutTransaction { database in
            let isFit = try AheadLog.apply(to: database, of: path)
            let facts = try Self.facts(database)
            let run = (facts["run"] ?? 0) + 1
            let kept = facts["kept"] ?? clocks.wall
            return try Parts(
                ledger: DiskLedger(database, run: run, youngest: facts["youngest"] ?? .max),
                jobs: JobTable(database, .journal), attempts: AttemptTable(database),
                history: HistoryPruning(database, retention),
                rules: RuleBook(database), mounts: MountBook(database),
                fact: JournalStatement.fact.prepare(in: database),
                transaction: WriteTransaction(database), pauses: Pauses(database), run: run,
                kept: kept, clockOffset: ClockOffset(facts, kept: kept, clocks), isFit: isFit)
        }
        queue = JobQueue(parts.ledger)
        queue.files.rules = parts.rules.ids
        queue.changes = JobChanges()
        jobs = parts.jobs
        attempts = parts.attempts
        history = parts.history
        rules = parts.rules
        mounts = parts.mounts
        pauses = parts.pauses
        keptPauses = parts.pauses
        fact = parts.fact
        transaction = parts.transaction
        run = parts.run
        kept = parts.kept
        clockOffset = parts.clockOffset
        hasUnfitLog = !parts.isFit
        do throws(JournalError) {
            ahead = lock == nil ? nil : try AheadLog(of: path)
            aheadError = nil
        } catch {
            ahead = nil
            aheadError = error
        }
        try restoreJobs(clocks)
        try writeMakingRoom(clocks)
        wait(upTo: Self.turnPatience)
    }

    /// How long a commit in a turn of the engine waits for another program that writes: the engine watches, too.
    private static let turnPatience = Duration.milliseconds(250)
    /// How long the last commit does.
    private static let lastPatience = Duration.seconds(5)

    /// Uses the connection, whose read transaction must not be left open then.
    private func access<Result>(_ body: (Database) throws -> Result) rethrows -> Result {
        queue.files.endReading()
        return try connection.writeWithoutTransaction(body)
    }

    private func wait(upTo patience: Duration) {
        let milliseconds = patience.columnValue / 1_000_000
        try? access { try $0.execute(sql: "PRAGMA busy_timeout = \(milliseconds)") }
    }

    private struct Parts {
        var ledger: DiskLedger
        var jobs: JobTable
        var attempts: AttemptTable
        var history: HistoryPruning
        var rules: RuleBook
        var mounts: MountBook
        var fact: SQLStatement
        var transaction: WriteTransaction
        var pauses: Pauses
        var run: Int64
        var kept: Int64
        var clockOffset: ClockOffset
        var isFit: Bool
    }

    private static func facts(_ database: Database) throws -> [String: Int64] {
        var facts: [String: Int64] = [:]
        try SQLStatement("SELECT name, value FROM facts", in: database).each { facts[$0.text(0)] = $0.integer(1) }
        return facts
    }

    /// Takes the open jobs in; those that were running have been cut off, and are pending again.
    private mutating func restoreJobs(_ clocks: ClockPair) throws {
        let (rows, unreadable) = try jobs.openJobs()
        if !unreadable.isEmpty {
            try access { _ in
                for id in unreadable { try jobs.bury(id, at: clocks.wall) }
            }
            self.unreadable = unreadable.map { JobID(String(decoding: $0, as: UTF8.self)) }
        }
        for row in rows where row.state == .pending {
            let due = row.due.map { clocks.instant(of: $0 &+ clockOffset.shift(to: clocks)) } ?? clocks.instant
            // What others wait for may be there by now.
            let isDue = row.job.waiting != nil
            queue.insert(row.job, due: isDue ? min(due, clocks.instant) : due, sequence: row.position)
        }
        for row in rows where row.state == .running {
            interrupted += 1
            let started = row.due ?? kept
            let attempt = AttemptRecord(
                number: row.job.attempt, started: Timestamp(columnValue: started),
                duration: .nanoseconds(max(0, kept.subtractingReportingOverflow(started).partialValue)),
                outcome: .interrupted("Alight ended while the action ran"))
            queue.restoreInterrupted(row.job, attempt, sequence: row.position, due: clocks.instant)
        }
    }

    /// Looks at the file by the journal's own connection.
    func look<Result>(_ body: (Database) throws -> Result) rethrows -> Result {
        try access(body)
    }

    /// What `ready` has refused for good of a path, with the content that it has.
    mutating func refusal(_ rule: String, _ path: PathBytes, _ snapshot: Snapshot) -> Refusal? {
        if let refusal = queue.refusal(rule, path, snapshot) { return refusal }
        do {
            return try jobs.refusals(rule: rule, path: path).first { job in
                // What has become of it since the last commit counts, not its row.
                job.snapshot.hasSameContent(as: snapshot) && queue.changes?.jobs[job.id] == nil
            }
        } catch {
            note(error, isReading: true)
            return nil
        }
    }

    // MARK: Committing

    /// Whether there is something to be written.
    private var isChanged: Bool {
        queue.changes?.isEmpty == false || !queue.files.changes.isEmpty || rules.isChanged || mounts.hasChanges
            || isStopping || pauses != keptPauses
    }

    /// Sees to it that everything until now outlives the program, be it only in the log ahead of the database.
    ///
    /// What is rare and can't stand there is committed at once.
    mutating func secure(_ clocks: ClockPair) -> JournalFault? {
        guard note(clocks) else { return commit(clocks) }
        if commitDue == nil {
            // Else the commit that follows soon ends it.
            queue.files.endReading()
        }
        return ahead?.isLong == true ? commit(clocks) : nil
    }

    /// Notes everything until now in the log ahead of the database; false if it can't all stand there.
    mutating func note(_ clocks: ClockPair) -> Bool {
        if lock == nil, fault == nil, queue.files.fault == nil {
            // Nothing outlives the program: many turns are written at once, as with a file.
            if commitDue == nil, isChanged { commitDue = clocks.instant + AheadLog.delay }
            return true
        }
        guard let ahead, fault == nil, queue.files.fault == nil, !isStopping, queue.changes?.undos.isEmpty != false,
            !(rules.isChanged || mounts.hasChanges || pauses != keptPauses),
            !clockOffset.isStale(at: clocks)
        else { return false }
        guard queue.changes?.isTold == false || !queue.files.isTold else { return true }
        // Nothing is begun for a journal that nobody would find; who commits finds out what became of it.
        guard identity == DiskProbe.identity(of: path), !ahead.isLong else { return false }
        let record = AheadRecord(header: AheadLog.headerSize)
        tell(record, clocks)
        guard ahead.append(record) else { return false }
        queue.changes?.noteTold()
        queue.files.noteTold()
        if commitDue == nil { commitDue = clocks.instant + AheadLog.delay }
        return true
    }

    /// Lets others see what is noted, if that can be had at once.
    mutating func catchUp(_ clocks: ClockPair) {
        if commitDue != nil, !isFailing { _ = commit(clocks) }
    }

    /// Tells the log what has changed since it was told of anything.
    private func tell(_ record: AheadRecord, _ clocks: ClockPair) {
        queue.files.write(to: record)
        guard let changes = queue.changes else { return }
        for id in changes.newsOrder {
            guard let change = changes.jobs[id], let news = change.news else { continue }
            guard let row = row(of: id, change.fate, news, clocks) else {
                record.add(.deleteJob) { $0.bind(id.description) }
                continue
            }
            record.add(news.hasFacts ? .upsertJob : .updateJob, row.bind)
        }
        for attempt in changes.newAttempts {
            if case .gone = changes.jobs[attempt.job]?.fate { continue }
            let row = AttemptRow(attempt)
            if row.hasLog { record.add(.log, row.bindLog) }
            record.add(.attempt, row.bind)
            if row.isOneOfMany { record.add(.forgetAttempts, row.bindJob) }
        }
        if queue.files.isYounger { record.add(.fact, FactRow(name: "youngest", value: queue.files.youngest).bind) }
        if isWatching { record.add(.fact, FactRow(name: "kept", value: clocks.wall).bind) }
    }

    /// What is written of a job; nil when nothing is kept of it.
    private func row(
        of id: JobID, _ fate: JobChanges.Fate, _ part: JobChanges.Part, _ clocks: ClockPair
    ) -> JobRow? {
        switch fate {
        case .open:
            let (job, place) = queue.open(id)
            return JobRow(job, part, place: place, clocks)
        case .ended(let end): return JobRow(end, part, at: clocks.wall)
        case .gone: return nil
        }
    }

    /// Writes everything since the last commit; a fault leaves it to the next one.
    mutating func commit(_ clocks: ClockPair) -> JournalFault? {
        queue.files.endReading()
        if fault == nil, let error = queue.files.fault { note(error, isReading: true) }
        if let fault { return fault }
        guard isChanged else { return nil }
        if lock != nil, identity != DiskProbe.identity(of: path) {
            let fault = JournalFault(
                mayPass: false, description: "the journal '\(path)' was removed or exchanged while Alight had it open",
                help: "put it back if it was moved; what was done since is not in it, and may be done again")
            self.fault = fault
            return fault
        }
        do {
            try writeMakingRoom(clocks)
            isFailing = false
            return nil
        } catch {
            isFailing = true
            let fault = JournalFault(error, at: path)
            if !fault.mayPass { self.fault = fault }
            return fault
        }
    }

    /// Notes that something can't be read, after which nothing is true any more.
    mutating func note(_ error: any Error, isReading: Bool) {
        if fault == nil { fault = JournalFault(error, at: path, isReading: isReading) }
    }

    private mutating func writeMakingRoom(_ clocks: ClockPair) throws {
        do {
            try write(clocks)
        } catch let error as DatabaseError where error.resultCode == .SQLITE_FULL {
            // The log has room of its own, if what it holds can go into the file.
            try access { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
            try write(clocks)
        }
    }

    private mutating func write(_ clocks: ClockPair) throws {
        let number = AheadLog.newNumber()
        let offset = clockOffset.isStale(at: clocks) ? ClockOffset(clocks) : clockOffset
        try access { database in
            try transaction.run {
                let shift = offset.value &- clockOffset.value
                if shift != 0 { try jobs.moveDue(by: shift) }
                if shift != 0 || notedClean == nil {
                    try note("clock_offset", offset.value)
                    try note("boot", offset.boot)
                }
                if rules.isChanged { try rules.write(database) }
                if mounts.hasChanges { try mounts.write(database, run: run) }
                if pauses != keptPauses { try pauses.write(database) }
                try writeRows(database, clocks)
                // Also where there is no log: an old one must not be taken for what came since.
                try fact.run(FactRow.ahead(number).bind)
            }
        }
        ahead?.begin(number)
        commitDue = nil
        clockOffset = offset
        queue.changes = JobChanges()
        // From now on the file tells of them.
        queue.refusals = [:]
        queue.files.noteCommitted()
        queue.files.devices = [:]
        rules.noteCommitted()
        mounts.noteCommitted()
        keptPauses = pauses
        history.noteCommitted()
        notedClean = isStopping
    }

    /// Writes what comes with nearly every commit.
    private func writeRows(_ database: Database, _ clocks: ClockPair) throws {
        let changes = queue.changes ?? JobChanges()
        var ended: [JobID] = []
        try queue.files.write()
        for id in changes.order {
            guard let change = changes.jobs[id] else { continue }
            guard let row = row(of: id, change.fate, change.part, clocks) else {
                try jobs.delete(id)
                continue
            }
            try jobs.write(row)
            // Dead jobs stay, and so don't count.
            if case .ended(let end) = change.fate, end.state != .dead { ended.append(id) }
        }
        for attempt in changes.attempts {
            if case .gone = changes.jobs[attempt.job]?.fate { continue }
            try attempts.write(AttemptRow(attempt))
        }
        for (kept, record) in changes.undos { try attempts.write(record, of: kept) }
        if notedClean == nil { try note("run", run) }
        try note("youngest", queue.files.youngest)
        if isWatching { try note("kept", clocks.wall) }
        if notedClean != isStopping { try note("is_clean", isStopping ? 1 : 0) }
        try history.prune(database, ended: ended, at: clocks.wall)
    }

    private func note(_ name: String, _ value: Int64) throws {
        try fact.run(FactRow(name: name, value: value).bind)
    }

    // MARK: Stopping

    /// Commits what is left, notes the clean stop, and empties the log into the file.
    mutating func stop(_ clocks: ClockPair) -> JournalFault? {
        isStopping = true
        wait(upTo: Self.lastPatience)
        if let fault = commit(clocks) { return fault }
        ahead?.remove()
        // It is only tidier: the next start reads the log as well.
        try? access { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
        return nil
    }
}

import FileEvents
import GRDB
import Reconciling
import Records
import Rules
import Storage
import Synchronization
import System
import TestKit

/// A store in its own directory, and a clock that only the test advances.
final class StoreBench: Sendable {
    let root: PathBytes
    let path: PathBytes
    private let start = ContinuousClock.now
    private let passed = Mutex(Duration.zero)
    private let clockSet = Mutex(Duration.zero)
    private let opened = Mutex<DiskStore?>(nil)
    private let retention: JournalRetention
    /// The rules that are begun.
    static let rules = ["r", "s", "t"].map { RuleRecord(name: $0, selection: "*") }
    /// The first of these rules in a new file.
    static let rule = RuleID(1)

    init(_ name: String = "journal.db", keeping retention: JournalRetention = JournalRetention()) {
        self.retention = retention
        root = TestFile.makeTemporaryDirectory()
        path = root.appending(name)
    }

    deinit { TestFile.removeTree(root) }

    var now: ContinuousClock.Instant { start + passed.withLock { $0 } }
    var wall: Timestamp { Timestamp.early.advanced(by: passed.withLock { $0 } + clockSet.withLock { $0 }) }
    var clocks: ClockPair { ClockPair(wall, now) }

    /// Sets the time of day, as date(1) does.
    func setClock(by difference: Duration) { clockSet.withLock { $0 += difference } }
    func wait(_ duration: Duration) { passed.withLock { $0 += duration } }

    /// The store, opened at its first use, with the rules `r`, `s` and `t` begun.
    var store: DiskStore {
        get throws {
            if let store = opened.withLock({ $0 }) { return store }
            let store = try open()
            _ = store.register(Self.rules, isWatching: true, at: wall)
            return store
        }
    }

    /// Opens the store without rules.
    @discardableResult func open() throws(JournalError) -> DiskStore {
        let store = try DiskStore(
            at: path, now: wall, keeping: retention, clock: { [weak self] in self?.now ?? .now })
        opened.withLock { $0 = store }
        return store
    }

    /// Drops the store without a clean stop, as a kill does.
    func kill() { opened.withLock { $0 = nil } }

    /// Ends the run by a clean stop or by a kill.
    func end(isClean: Bool) throws {
        if isClean {
            let error = try store.close(at: wall)
            if let error { throw error }
        }
        kill()
    }

    // MARK: Commits

    /// Commits the changes that the closure makes.
    ///
    /// - Throws: The error of the commit.
    func commit(_ change: (inout TurnChanges) -> Void) throws {
        var changes = TurnChanges()
        change(&changes)
        if let error = try store.commit(changes, at: clocks) { throw error }
    }

    /// Commits the state of jobs.
    func commit(isNew: Bool = true, _ jobs: OpenJob...) throws {
        try commit { changes in
            for open in jobs { changes.jobs[open.job.id] = JobChange(.unfinished(open), isNew: isNew) }
        }
    }

    /// Commits the outcome of a job with its last attempt.
    func end(_ open: OpenJob, _ state: JobState, _ outcome: Outcome, isNew: Bool = false) throws {
        try commit {
            $0.jobs[open.job.id] = JobChange(.ended(open, state, outcome), isNew: isNew)
            $0.attempts = [(open.job.id, attempt(open, outcome))]
        }
    }

    func attempt(_ open: OpenJob, _ outcome: Outcome) -> AttemptRecord {
        AttemptRecord(number: open.job.attempt, started: wall, duration: .milliseconds(5), outcome: outcome)
    }

    func unfinished(_ rule: RuleID = rule) throws -> [OpenJob] { try store.unfinishedJobs(of: rule, at: clocks) }

    // MARK: The file

    /// Reads the file with a separate connection, as sqlite3(1) does.
    func inspect<Result>(_ body: (Database) throws -> Result) throws -> Result {
        let queue = try DatabaseQueue(path: "\(path)")
        defer { try? queue.close() }
        return try queue.writeWithoutTransaction(body)
    }

    /// Returns the columns of all rows that a query finds, as strings joined by `|`.
    func rows(_ sql: String) throws -> [String] {
        try inspect { database in
            try Row.fetchAll(database, sql: sql).map { row in
                row.databaseValues.map { value in
                    switch value.storage {
                    case .null: ""
                    case .int64(let number): "\(number)"
                    case .double(let number): "\(number)"
                    case .string(let text): text
                    case .blob(let blob): String(decoding: blob, as: UTF8.self)
                    }
                }.joined(separator: "|")
            }
        }
    }
}

extension OpenJob {
    /// Creates a leased job of an offer, with the given number.
    static func leased(_ number: UInt64, _ event: FileEvent = .sample(), rule: String = "r") -> OpenJob {
        var job = Job(id: JobID("\(number)"), rule: rule, event: event, number: number)
        job.attempt = 1
        return OpenJob(job, Offer(number: number, event: event))
    }

    /// Returns the same job while it waits for its next attempt.
    func retrying(at due: ContinuousClock.Instant) -> OpenJob {
        changed { $1?.state = .retrying(due) }
    }

    /// Returns the job after changes of it and of its offer.
    func changed(_ body: (inout Job, inout Offer?) -> Void) -> OpenJob {
        var (job, offer) = (job, offer)
        body(&job, &offer)
        return OpenJob(job, offer, leased: leased)
    }
}

extension Timestamp {
    /// A time before all events in tests.
    static let early = Timestamp(seconds: 1_000_000_000, nanoseconds: 0)
}

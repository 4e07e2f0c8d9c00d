import FileEvents
import GRDB
import Journaling
import PluginProtocol
import Reconciling
import Rules
import Synchronization
import TestKit

/// A journal's file in a folder of its own, and time that only the test moves.
final class DiskBench: Sendable {
    let root: PathBytes
    let path: PathBytes
    private let start = ContinuousClock.now
    private let passed = Mutex(Duration.zero)
    private let clockSet = Mutex(Duration.zero)
    private let opened = Mutex<DiskJournal?>(nil)
    /// What a rule has to be, to have begun.
    static let rules = ["r", "s", "t"].map { RuleRecord(name: $0, selection: "*") }

    private let retention: JournalRetention

    init(_ name: String = "journal.db", keeping retention: JournalRetention = JournalRetention()) {
        self.retention = retention
        root = TestFile.makeTemporaryFolder()
        path = root.appending(name)
    }

    deinit { TestFile.removeTree(root) }

    var now: ContinuousClock.Instant { start + passed.withLock { $0 } }
    var wall: Timestamp { Timestamp.early.advanced(by: passed.withLock { $0 } + clockSet.withLock { $0 }) }
    /// Sets the time of day, as date(1) does.
    func setClock(by difference: Duration) { clockSet.withLock { $0 += difference } }
    func wait(_ duration: Duration) { passed.withLock { $0 += duration } }

    /// The journal, opened when it is asked for first; the rules `r`, `s` and `t` have begun.
    var journal: DiskJournal {
        get throws {
            if let journal = opened.withLock({ $0 }) { return journal }
            let journal = try open()
            _ = journal.begin(Self.rules, at: wall)
            return journal
        }
    }

    /// Opens it, without rules.
    @discardableResult func open() throws(JournalError) -> DiskJournal {
        let journal = try DiskJournal(
            at: path, now: wall, keeping: retention, clock: { [weak self] in self?.now ?? .now })
        opened.withLock { $0 = journal }
        return journal
    }

    /// Lets the journal go without a commit, as a kill does.
    func kill() { opened.withLock { $0 = nil } }

    func close() throws { _ = try journal.close(at: wall) }

    // MARK: Calls

    func commit() throws -> JournalFault? { try journal.commit(at: wall) }
    func secure() throws -> JournalFault? { try journal.secure(at: wall) }

    func accept(
        _ id: String, _ kind: EventKind = .created, _ path: PathBytes = "/in/a", rule: String = "r",
        _ snapshot: Snapshot = .sample(), before: Snapshot? = nil
    ) throws {
        let event = FileEvent.sample(kind, path, snapshot, before: before)
        let entry = LedgerEntry(view: rule, path: path, snapshot: kind == .deleted ? nil : snapshot)
        try journal.accept([Job(id: JobID(id), rule: rule, event: event)], [entry], now: now)
    }

    func set(_ path: PathBytes, _ snapshot: Snapshot?, rule: String = "r") throws {
        try journal.accept([], [LedgerEntry(view: rule, path: path, snapshot: snapshot)], now: now)
    }

    func known(_ path: PathBytes, rule: String = "r") throws -> Snapshot? {
        try journal.snapshot(view: rule, path: path)
    }

    func lease(_ limit: Int = 1, rule: String = "r") throws -> [Job] {
        try journal.lease(rule: rule, limit: limit, busy: [], now: now)
    }

    func attempt(_ job: Job, _ outcome: Outcome) -> AttemptRecord {
        AttemptRecord(number: job.attempt, started: wall, duration: .milliseconds(5), outcome: outcome)
    }

    func end(_ job: Job, _ state: JobState = .succeeded, _ outcome: Outcome = Outcome(.succeeded)) throws {
        _ = try journal.record(job, attempt(job, outcome), .ended(state, outcome), [])
    }

    func again(_ job: Job, after pause: Duration, _ outcome: Outcome = Outcome(.retry, "not now")) throws {
        _ = try journal.record(job, attempt(job, outcome), .again(at: now + pause, outcome, counts: true), [])
    }

    func retry(_ id: String) throws { try journal.retry(JobID(id), now: now) }
    func discard(_ id: String) throws { try journal.discard(JobID(id)) }

    // MARK: The file

    /// Looks at the file by a connection of its own, as sqlite3(1) does.
    func look<Result>(_ body: (Database) throws -> Result) throws -> Result {
        let queue = try DatabaseQueue(path: "\(path)")
        defer { try? queue.close() }
        return try queue.writeWithoutTransaction(body)
    }

    /// The columns of all rows that a query finds, as text with `|` between.
    func rows(_ sql: String) throws -> [String] {
        try look { database in
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

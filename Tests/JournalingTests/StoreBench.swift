import FileEvents
import GRDB
import Journaling
import LedgerReconciling
import Rules
import Storage
import Synchronization
import TestKit

/// A store in a directory of its own, and a clock that only the test moves.
final class StoreBench: Sendable {
    /// The directory and the clocks; its journal is never opened.
    let disk: DiskBench
    private let opened = Mutex<DiskStore?>(nil)
    private let retention: JournalRetention
    /// The first of the rules `r`, `s` and `t` in a new file.
    static let rule = RuleID(1)

    init(keeping retention: JournalRetention = JournalRetention()) {
        disk = DiskBench("store.db")
        self.retention = retention
    }

    var path: PathBytes { disk.path }
    var clocks: ClockPair { ClockPair(disk.wall, disk.now) }

    /// The store, opened at its first use; the rules `r`, `s` and `t` have begun.
    var store: DiskStore {
        get throws {
            if let store = opened.withLock({ $0 }) { return store }
            let store = try open()
            _ = store.begin(DiskBench.rules, isWatching: true, at: disk.wall)
            return store
        }
    }

    /// Opens it, without rules.
    @discardableResult func open() throws(JournalError) -> DiskStore {
        let store = try DiskStore(
            at: path, now: disk.wall, keeping: retention, clock: { [weak self] in self?.disk.now ?? .now })
        opened.withLock { $0 = store }
        return store
    }

    /// Drops the store without a clean stop, as a kill does.
    func kill() { opened.withLock { $0 = nil } }

    /// Ends the run, by a clean stop or by a kill.
    func end(isClean: Bool) throws {
        if isClean {
            let fault = try store.close(at: disk.wall)
            if let fault { throw fault }
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
        if let fault = try store.commit(changes, at: clocks) { throw fault }
    }

    /// Commits the state of jobs.
    func commit(isNew: Bool = true, _ jobs: StoredJob...) throws {
        try commit { changes in
            for job in jobs { changes.jobs[job.job.id] = JobChange(.unfinished(job), isNew: isNew) }
        }
    }

    /// Commits the end of a job with its last attempt.
    func end(_ job: StoredJob, _ state: JobState, _ outcome: Outcome, isNew: Bool = false) throws {
        var job = job
        job.state = state
        try commit {
            $0.jobs[job.job.id] = JobChange(.ended(job, outcome), isNew: isNew)
            $0.attempts = [(job.job.id, attempt(job, outcome))]
        }
    }

    func attempt(_ job: StoredJob, _ outcome: Outcome) -> AttemptRecord {
        AttemptRecord(number: job.job.attempt, started: disk.wall, duration: .milliseconds(5), outcome: outcome)
    }

    func unfinished(_ rule: RuleID = rule) throws -> [StoredJob] { try store.unfinishedJobs(of: rule, at: clocks) }

    func rows(_ sql: String) throws -> [String] { try disk.rows(sql) }
}

extension StoredJob {
    /// A job of an offer that was leased, by its number.
    static func leased(
        _ number: UInt64, _ event: FileEvent = .sample(), rule: String = "r", due: ContinuousClock.Instant? = nil
    ) -> StoredJob {
        var job = Job(id: JobID("\(number)"), rule: rule, event: event)
        job.attempt = 1
        var offer = Offer(number: number, event: event)
        offer.state = .started
        return StoredJob(job, .running, offer, number: number, due: due)
    }

    /// The same job while it waits for its next attempt.
    func retrying(at due: ContinuousClock.Instant) -> StoredJob {
        var other = self
        (other.state, other.due) = (.pending, due)
        other.offer?.state = .retrying(due)
        return other
    }
}

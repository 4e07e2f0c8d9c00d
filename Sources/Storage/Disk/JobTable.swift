import FileEvents
import GRDB
import PluginProtocol
import Reconciling
import Rules
import System

/// The rows of jobs.
///
/// Used under the lock of the journal.
final class JobTable {
    /// The row of a job.
    struct Row {
        var job: Job
        var state: JobState
        var position: UInt64
        /// The time at which a pending job is due, or at which a running one was leased.
        var due: Int64?
        /// The event as it was offered; nil for a frozen job.
        var offer: Offer?
    }

    private let upsert: SQLStatement
    private let update: SQLStatement
    private let delete: SQLStatement
    private let open: SQLStatement
    private let openOfRule: SQLStatement
    private let byID: SQLStatement
    private let bury: SQLStatement
    private let move: SQLStatement
    private let refused: SQLStatement

    init(_ database: Database) throws {
        let columns = """
            id, rule, facts, state, attempt, is_interrupted, position, due, previous, steps, message, code,
            progress
            """
        upsert = try SQLStatement(StoredJobRow.upsert, in: database)
        update = try SQLStatement(StoredJobRow.update, in: database)
        delete = try SQLStatement("DELETE FROM jobs WHERE id = ?", in: database)
        let select = "SELECT \(columns) FROM jobs WHERE"
        open = try SQLStatement("\(select) state IN ('pending', 'running')", in: database)
        openOfRule = try SQLStatement(
            "\(select) state IN ('pending', 'running') AND rule = ? ORDER BY position", in: database)
        byID = try SQLStatement("\(select) id = ?", in: database)
        refused = try SQLStatement(
            """
            SELECT id, facts, message FROM jobs
            WHERE rule = ? AND path = ? AND code = 'ready' AND state IN ('failed', 'skipped') ORDER BY id DESC
            """, in: database)
        bury = try SQLStatement(
            """
            UPDATE jobs SET state = 'failed', is_interrupted = 0, due = NULL, ended = ?2, message = ?3, code = ?4
            WHERE id = ?1
            """, in: database)
        move = try SQLStatement(
            """
            UPDATE jobs INDEXED BY jobs_open SET due = due + ?1
            WHERE state IN ('pending', 'running') AND abs(due / 2) < 1 << 61
            """, in: database)
    }

    // MARK: Reading

    /// Returns the unfinished jobs in the order of their creation, and the ids of those whose rows are unreadable.
    func openJobs() throws -> (rows: [Row], unreadable: [[UInt8]]) {
        var rows: [Row] = []
        var unreadable: [[UInt8]] = []
        try open.each { row in
            do {
                rows.append(try self.row(row))
            } catch is UnreadableRow {
                unreadable.append(row.blob(0))
            }
        }
        return (rows.sorted { $0.position < $1.position }, unreadable)
    }

    /// Returns the unfinished jobs of a rule, sorted by number.
    ///
    /// - Throws: `UnreadableRow` among others.
    func openJobs(of rule: String) throws -> [Row] {
        var rows: [Row] = []
        try openOfRule.each({ $0.bind(rule) }, { rows.append(try self.row($0)) })
        return rows
    }

    /// Returns the job with the id; nil if there is none, or if its row is unreadable.
    func job(_ id: JobID) throws -> Row? {
        try byID.first {
            $0.bind(id.description)
        } _: { row -> Row? in
            do {
                return try self.row(row)
            } catch is UnreadableRow {
                return nil
            }
        } ?? nil
    }

    /// Returns the permanent refusals of the path by `ready`, with the metadata at that time, the newest first.
    func refusals(rule: String, path: PathBytes) throws -> [Refusal] {
        var refusals: [Refusal] = []
        try refused.each {
            $0.bind(rule)
            $0.bind(blob: path.bytes)
        } _: { row in
            guard let event = row.utf8(1).flatMap({ FileEvent(record: $0) }) else { return }
            let message = row.optionalText(2) ?? ""
            refusals.append(Refusal(id: JobID(row.text(0)), snapshot: event.snapshot, message: message))
        }
        return refusals
    }

    private func row(_ row: SQLStatement) throws -> Row {
        guard let event = row.utf8(2).flatMap({ FileEvent(record: $0) }),
            let state = JobState(rawValue: row.text(3)), event.path.isAbsoluteName
        else { throw UnreadableRow(table: "jobs") }
        var job = Job(id: JobID(row.text(0)), rule: row.text(1), event: event)
        job.attempt = Int(row.integer(4))
        job.isInterrupted = row.integer(5) != 0
        job.previous = row.utf8(8).flatMap { PreviousAttempt(record: $0) }
        if let text = row.utf8(9) {
            guard let steps = JobSteps(record: text) else { throw UnreadableRow(table: "jobs") }
            (job.steps, job.failure) = (steps.finished, steps.failure)
        }
        if state == .pending, let cause = row.optionalText(11).flatMap(Waiting.Cause.init) {
            job.waiting = Waiting(cause, row.optionalText(10) ?? "")
        }
        var offer: Offer?
        if let text = row.utf8(12) {
            guard let record = Offer(record: text) else { throw UnreadableRow(table: "jobs") }
            offer = record
        }
        return Row(
            job: job, state: state, position: UInt64(bitPattern: row.integer(6)), due: row.optionalInteger(7),
            offer: offer)
    }

    // MARK: Writing

    /// Writes the state of a job.
    func write(_ row: StoredJobRow) throws { try (row.isNew ? upsert : update).run { row.bind(to: $0) } }

    /// Marks a job with an unreadable row as failed; the rest of the row is unchanged.
    func bury(_ id: [UInt8], at now: Int64) throws {
        try bury.run { row in
            row.bind(utf8: id)
            row.bind(now)
            row.bind("its row in the journal can't be read; 'alight apply' runs its rule for the file")
            row.bind(JobEntry.unreadableCode)
        }
    }

    /// Shifts the due times of all open jobs, in nanoseconds.
    func moveDue(by shift: Int64) throws { try move.run { $0.bind(shift) } }

    func delete(_ id: JobID) throws { try delete.run { $0.bind(id.description) } }
}

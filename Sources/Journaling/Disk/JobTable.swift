import FileEvents
import GRDB
import PluginProtocol
import Rules
import Storage

/// The rows of jobs and of attempts at them.
///
/// Whoever holds the journal's lock may use it.
final class JobTable {
    /// A job as its row has it.
    struct Row {
        var job: Job
        var state: JobState
        var position: UInt64
        /// When a pending job is due; when a running one was leased.
        var due: Int64?
    }

    private let upsert: SQLStatement
    private let update: SQLStatement
    private let delete: SQLStatement
    private let attempt: SQLStatement
    private let log: SQLStatement
    private let forget: SQLStatement
    private let open: SQLStatement
    private let byID: SQLStatement
    private let bury: SQLStatement
    private let move: SQLStatement
    private let refused: SQLStatement
    private let changes: SQLStatement
    private let undo: SQLStatement
    private let undone: SQLStatement

    private static let columns =
        "id, rule, facts, mask, state, attempt, is_interrupted, position, due, previous, steps, is_alone, message, code, is_heir"

    init(_ database: Database) throws {
        upsert = try JournalStatement.upsertJob.prepare(in: database)
        update = try JournalStatement.updateJob.prepare(in: database)
        delete = try JournalStatement.deleteJob.prepare(in: database)
        attempt = try JournalStatement.attempt.prepare(in: database)
        log = try JournalStatement.log.prepare(in: database)
        changes = try SQLStatement(KeptChanges.query, in: database)
        undo = try SQLStatement(
            "UPDATE attempts SET undone = ?4 WHERE job = ?1 AND started = ?2 AND number = ?3", in: database)
        undone = try SQLStatement("UPDATE jobs SET undone = ?2 WHERE id = ?1", in: database)
        forget = try JournalStatement.forgetAttempts.prepare(in: database)
        open = try SQLStatement(
            "SELECT \(Self.columns) FROM jobs WHERE state IN ('pending', 'running')", in: database)
        byID = try SQLStatement("SELECT \(Self.columns) FROM jobs WHERE id = ?", in: database)
        refused = try SQLStatement(
            """
            SELECT id, facts, message FROM jobs
            WHERE rule = ? AND path = ? AND code = 'ready' AND state IN ('dead', 'skipped') ORDER BY id DESC
            """, in: database)
        bury = try SQLStatement(
            """
            UPDATE jobs SET state = 'dead', is_interrupted = 0, due = NULL, ended = ?2, message = ?3, code = ?4
            WHERE id = ?1
            """, in: database)
        move = try SQLStatement(
            """
            UPDATE jobs INDEXED BY jobs_open SET due = due + ?1
            WHERE state IN ('pending', 'running') AND abs(due / 2) < 1 << 61
            """, in: database)
    }

    // MARK: Reading

    /// The jobs that are not finished, in the order in which they came, and the ids of those that make no sense.
    func openJobs() throws -> (rows: [Row], unreadable: [[UInt8]]) {
        var rows: [Row] = []
        var unreadable: [[UInt8]] = []
        try open.each { row in
            do {
                rows.append(try Self.row(row))
            } catch is UnreadableRow {
                unreadable.append(row.blob(0))
            }
        }
        return (rows.sorted { $0.position < $1.position }, unreadable)
    }

    /// The job with the id; nil when there is none, or when its row makes no sense.
    func job(_ id: JobID) throws -> Row? {
        try byID.first {
            $0.bind(id.description)
        } _: { row -> Row? in
            do {
                return try Self.row(row)
            } catch is UnreadableRow {
                return nil
            }
        } ?? nil
    }

    /// Whether the job will not be tried again by itself, be its row readable or not.
    func isDead(_ id: JobID) throws -> Bool {
        try byID.first {
            $0.bind(id.description)
        } _: {
            $0.text(4) == JobState.dead.rawValue
        } ?? false
    }

    /// What `ready` has refused for good of the path, each as it was then, the newest first.
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

    private static func row(_ row: SQLStatement) throws -> Row {
        guard let event = row.utf8(2).flatMap({ FileEvent(record: $0) }),
            let state = JobState(rawValue: row.text(4)), event.path.isAbsoluteName
        else { throw UnreadableRow(table: "jobs") }
        var job = Job(
            id: JobID(row.text(0)), rule: row.text(1), event: event,
            mask: EventMask(rawValue: UInt32(truncatingIfNeeded: row.integer(3))))
        job.attempt = Int(row.integer(5))
        job.isInterrupted = row.integer(6) != 0
        job.isHeir = row.integer(14) != 0
        job.isAlone = row.integer(11) != 0
        job.previous = row.utf8(9).flatMap { PreviousAttempt(record: $0) }
        if let text = row.utf8(10) {
            guard let steps = [Outcome](record: text) else { throw UnreadableRow(table: "jobs") }
            job.steps = steps
        }
        if state == .pending, let cause = row.optionalText(13).flatMap(Waiting.Cause.init) {
            job.waiting = Waiting(cause, row.optionalText(12) ?? "")
        }
        return Row(
            job: job, state: state, position: UInt64(bitPattern: row.integer(7)), due: row.optionalInteger(8))
    }

    /// What the attempts at a job did that can be taken back, the last one first.
    func changes(of job: JobID) throws -> [KeptChanges] {
        var kept: [KeptChanges] = []
        try changes.each {
            $0.bind(job.description)
        } _: { row in
            guard let facts = row.utf8(2), let changes = row.utf8(3),
                let one = KeptChanges(
                    job: job, rule: row.text(5), number: row.integer(0), started: row.integer(1), facts: facts,
                    changes: changes,
                    undone: row.utf8(4))
            else { return }
            kept.append(one)
        }
        return kept
    }

    // MARK: Writing

    func write(_ record: UndoRecord, of changes: KeptChanges) throws {
        try undo.run { row in
            row.bind(changes.job.description)
            row.bind(changes.started.columnValue)
            row.bind(Int64(changes.number))
            row.bind(utf8: record.record)
        }
        let kept = try self.changes(of: changes.job)
        try undone.run { row in
            row.bind(changes.job.description)
            row.bind(Undone(kept)?.rawValue)
        }
    }

    /// Writes what has become of a job.
    func write(_ row: JobRow) throws { try (row.part.hasFacts ? upsert : update).run { row.bind(to: $0) } }

    /// Makes a dead letter of a job whose row makes no sense, and leaves the rest of the row as it is.
    func bury(_ id: [UInt8], at now: Int64) throws {
        try bury.run { row in
            row.bind(utf8: id)
            row.bind(now)
            row.bind("its row in the journal can't be read; 'alight apply' runs its rule for the file")
            row.bind(JobEntry.unreadableCode)
        }
    }

    /// Moves the due times of all open jobs, in nanoseconds.
    func moveDue(by shift: Int64) throws { try move.run { $0.bind(shift) } }

    func delete(_ id: JobID) throws { try delete.run { $0.bind(id.description) } }

    func write(_ row: AttemptRow) throws {
        if row.hasLog { try log.run { row.bindLog(to: $0) } }
        try attempt.run { row.bind(to: $0) }
        if row.isOneOfMany { try forget.run { row.bindJob(to: $0) } }
    }
}

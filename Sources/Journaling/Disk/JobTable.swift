import FileEvents
import GRDB
import PluginProtocol
import Rules

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
    private let forget: SQLStatement
    private let open: SQLStatement
    private let byID: SQLStatement
    private let bury: SQLStatement
    private let refused: SQLStatement
    private let changes: SQLStatement
    private let undo: SQLStatement

    private static let columns =
        "id, rule, facts, mask, state, attempt, is_interrupted, position, due, previous, steps, is_alone, message, code"

    init(_ database: Database) throws {
        upsert = try SQLStatement(
            """
            INSERT INTO jobs (id, state, attempt, is_interrupted, position, due, ended, previous, steps, message, code,
                rule, path, event, facts, mask, created, is_alone)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (id) DO UPDATE SET
                state = excluded.state, attempt = excluded.attempt, is_interrupted = excluded.is_interrupted,
                position = excluded.position, due = excluded.due, ended = excluded.ended,
                previous = excluded.previous, steps = excluded.steps, message = excluded.message,
                code = excluded.code, rule = excluded.rule, path = excluded.path, event = excluded.event,
                facts = excluded.facts, mask = excluded.mask
            """, in: database)
        update = try SQLStatement(
            """
            UPDATE jobs SET state = ?2, attempt = ?3, is_interrupted = ?4, position = coalesce(?5, position),
                due = ?6, ended = ?7, previous = ?8, steps = ?9, message = ?10, code = ?11 WHERE id = ?1
            """, in: database)
        delete = try SQLStatement("DELETE FROM jobs WHERE id = ?", in: database)
        attempt = try SQLStatement(
            """
            INSERT OR REPLACE INTO attempts
                (job, started, number, duration, outcome, message, code, status, signal, log, request, changes)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """, in: database)
        changes = try SQLStatement(KeptChanges.query, in: database)
        undo = try SQLStatement(
            "UPDATE attempts SET undone = ?4 WHERE job = ?1 AND started = ?2 AND number = ?3", in: database)
        // Of a job that is not ready again and again the last attempts are kept.
        forget = try SQLStatement(
            """
            DELETE FROM attempts WHERE job = ?1 AND started <
                (SELECT started FROM attempts WHERE job = ?1 ORDER BY started DESC LIMIT 1 OFFSET 19)
            """, in: database)
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
            guard let event = row.utf8(1).flatMap(JSONParser.value(of:)).flatMap(FileEvent.init) else { return }
            let message = row.optionalText(2) ?? ""
            refusals.append(Refusal(id: JobID(row.text(0)), snapshot: event.snapshot, message: message))
        }
        return refusals
    }

    private static func row(_ row: SQLStatement) throws -> Row {
        guard let event = row.utf8(2).flatMap(JSONParser.value(of:)).flatMap(FileEvent.init),
            let state = JobState(rawValue: row.text(4))
        else { throw UnreadableRow(table: "jobs") }
        var job = Job(
            id: JobID(row.text(0)), rule: row.text(1), event: event,
            mask: EventMask(rawValue: UInt32(truncatingIfNeeded: row.integer(3))))
        job.attempt = Int(row.integer(5))
        job.isInterrupted = row.integer(6) != 0
        job.isAlone = row.integer(11) != 0
        job.previous = row.utf8(9).flatMap(JSONParser.value(of:)).flatMap(PreviousAttempt.init)
        if let text = row.utf8(10) {
            guard let steps = JSONParser.value(of: text).flatMap(Outcome.steps(in:)) else {
                throw UnreadableRow(table: "jobs")
            }
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
            row.bind(utf8: record.jsonText)
        }
    }

    /// Writes a job that is pending or running.
    func write(
        _ job: Job, _ change: JobChanges.Change, due: ContinuousClock.Instant?, position: UInt64?, _ clocks: ClockPair
    ) throws {
        // A running job has been leased since the last commit, or it would not be written.
        try write(
            job, change, state: due == nil ? .running : .pending, position: position,
            due: due.map { clocks.columnValue(of: $0) } ?? clocks.wall, message: job.waiting?.message,
            code: job.waiting?.cause.rawValue)
    }

    func write(_ end: JobChanges.End, _ change: JobChanges.Change, at now: Int64) throws {
        try write(end.job, change, state: end.state, ended: now, message: end.message, code: end.code)
    }

    private func write(
        _ job: Job, _ change: JobChanges.Change, state: JobState, position: UInt64? = nil, due: Int64? = nil,
        ended: Int64? = nil, message: String? = nil, code: String? = nil
    ) throws {
        let position = (change.position ?? position).map { Int64(bitPattern: $0) }
        // Nobody goes on with what is done.
        let steps = state == .succeeded || state == .skipped ? nil : Outcome.text(of: job.steps)
        try (change.hasFacts ? upsert : update).run { row in
            row.bind(job.id.description)
            row.bind(state.rawValue)
            row.bind(Int64(job.attempt))
            row.bind(job.isInterrupted)
            row.bind(change.hasFacts ? position ?? 0 : position)
            row.bind(due)
            row.bind(ended)
            row.bind(utf8: job.previous?.jsonText)
            row.bind(utf8: steps)
            row.bind(message)
            row.bind(code)
            guard change.hasFacts else { return }
            row.bind(job.rule)
            row.bind(blob: job.event.path.bytes)
            row.bind(job.event.kind.rawValue)
            var json = JSONOutput(capacity: 1024)
            job.event.write(to: &json)
            row.bind(utf8: json.bytes)
            row.bind(Int64(job.mask.rawValue))
            row.bind(job.event.time.columnValue)
            row.bind(job.isAlone)
        }
    }

    /// Makes a dead letter of a job whose row makes no sense, and leaves the rest of the row as it is.
    func bury(_ id: [UInt8], at now: Int64) throws {
        try bury.run { row in
            row.bind(utf8: id)
            row.bind(now)
            row.bind("its row in the journal can't be read; 'alight apply' runs its rule for the file")
            row.bind(JobEntry.unreadableCode)
        }
    }

    func delete(_ id: JobID) throws { try delete.run { $0.bind(id.description) } }

    func write(_ record: AttemptRecord, of job: JobID) throws {
        let outcome = record.outcome
        try attempt.run { row in
            row.bind(job.description)
            row.bind(record.started.columnValue)
            row.bind(Int64(record.number))
            row.bind(record.duration.columnValue)
            row.bind(outcome.isInterrupted ? "interrupted" : outcome.ending.rawValue)
            row.bind(outcome.message)
            row.bind(outcome.code)
            row.bind(outcome.process?.status.map(Int64.init))
            row.bind(outcome.process?.signal.map(Int64.init))
            row.bind(outcome.log.isEmpty ? nil : outcome.log)
            row.bind(outcome.process?.request)
            row.bind(utf8: outcome.changes.jsonText)
        }
        if outcome.ending == .notReady { try forget.run { $0.bind(job.description) } }
    }
}

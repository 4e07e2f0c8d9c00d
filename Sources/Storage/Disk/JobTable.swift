import FileEvents
import GRDB
import JSON
import PluginProtocol
import Records
import Rules
import System

/// The rows of jobs.
///
/// Used under the lock of the journal.
final class JobTable {
    /// A job and the part of it that belongs to the ledger; `due` is the time at which a pending job is due, or at
    /// which a running one was leased.
    typealias Row = (job: Job, offer: Offer?, state: JobState, due: Int64?)

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
        upsert = try SQLStatement(
            upsertInto: "jobs", key: "id",
            """
            state, attempt, is_interrupted, due, ended, previous, steps, progress, message, code, outputs, position, rule, \
            path, event, event_json
            """, initial: "created", clearing: "undone, superseded_by", in: database)
        update = try SQLStatement(
            """
            UPDATE jobs SET state = ?2, attempt = ?3, is_interrupted = ?4, due = ?5, ended = ?6, previous = ?7,
                steps = ?8, progress = ?9, message = ?10, code = ?11, outputs = ?12, undone = NULL,
                superseded_by = NULL WHERE id = ?1
            """, in: database)
        delete = try SQLStatement("DELETE FROM jobs WHERE id = ?", in: database)
        let select = """
            SELECT id, rule, event_json, state, attempt, is_interrupted, position, due, previous, steps, message, code,
            progress FROM jobs WHERE
            """
        open = try SQLStatement("\(select) state IN ('pending', 'running')", in: database)
        openOfRule = try SQLStatement(
            "\(select) state IN ('pending', 'running') AND rule = ? ORDER BY position", in: database)
        byID = try SQLStatement("\(select) id = ?", in: database)
        refused = try SQLStatement(
            """
            SELECT id, event_json, message FROM jobs
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

    /// Returns the number of running jobs, and the ids of unfinished ones whose rows are unreadable.
    func checkOpenJobs() throws -> (running: Int, unreadable: [[UInt8]]) {
        var running = 0
        let unreadable = try open.rows { row -> [UInt8]? in
            do {
                if try self.row(row).state == .running { running += 1 }
                return nil
            } catch is UnreadableRow {
                return row.blob(0)
            }
        }
        return (running, unreadable)
    }

    /// Returns the unfinished jobs of a rule, sorted by number.
    ///
    /// - Throws: `UnreadableRow` among others.
    func openJobs(of rule: String) throws -> [Row] { try openOfRule.rows({ $0.bind(rule) }, row) }

    /// Returns the job with the id; nil if there is none, or if its row is unreadable.
    func job(_ id: JobID) throws -> Row? {
        do {
            return try byID.first({ $0.bind(id.description) }, row)
        } catch is UnreadableRow {
            return nil
        }
    }

    /// Returns the permanent refusals of the path by `ready`, with the metadata at that time, the newest first.
    func refusals(rule: String, path: PathBytes) throws -> [Refusal] {
        try refused.rows({ $0.bind(rule).bind(blob: path.bytes) }) { row in
            FileEvent(record: row.blob(1)).map {
                Refusal(id: JobID(row.text(0)), snapshot: $0.snapshot, message: row.text(2))
            }
        }
    }

    private func row(_ row: SQLStatement) throws -> Row {
        guard let event = FileEvent(record: row.blob(2)), let state = JobState(rawValue: row.text(3)),
            event.path.isAbsoluteName
        else { throw UnreadableRow(table: "jobs") }
        var job = Job(id: JobID(row.text(0)), rule: row.text(1), event: event)
        job.attempt = row.integer(4)
        job.isInterrupted = row.flag(5)
        job.previous = row.optionalBlob(8).flatMap { PreviousAttempt(record: $0) }
        if let text = row.optionalBlob(9) {
            guard let steps = JobSteps(record: text) else { throw UnreadableRow(table: "jobs") }
            (job.steps, job.failure) = (steps.finished, steps.failure)
        }
        if state == .pending, let cause = row.optionalText(11).flatMap(Waiting.Cause.init) {
            job.waiting = Waiting(cause, row.text(10))
        }
        let progress = row.optionalBlob(12)
        let offer = progress.flatMap { Offer(record: $0) }
        guard progress == nil || offer != nil else { throw UnreadableRow(table: "jobs") }
        job.number = row.integer(6)
        return (job, offer, state, row.optionalInteger(7))
    }

    // MARK: Writing

    /// Writes a job, which is finished if it has an outcome.
    ///
    /// If `isNew` is false, its event has not changed, and only its state is written.
    func write(
        _ open: OpenJob, _ state: JobState, _ outcome: Outcome? = nil, isNew: Bool, at clocks: ClockPair
    ) throws {
        let job = open.job
        // No attempt follows one that has succeeded or was skipped.
        let isDone = state == .succeeded || state == .skipped
        let hasSteps = !job.steps.isEmpty || job.failure != nil
        let outputs = outcome?.outputs ?? []
        let due = outcome == nil ? open.due.map { clocks.columnValue(of: $0) } ?? clocks.wall : nil
        try (isNew ? upsert : update).run { row in
            row.bind(job.id.description).bind(state.rawValue).bind(job.attempt).bind(job.isInterrupted)
                .bind(due).bind(outcome == nil ? nil : clocks.wall)
                .bind(utf8: job.previous?.record)
                .bind(utf8: isDone || !hasSteps ? nil : JobSteps(finished: job.steps, failure: job.failure).record)
                .bind(utf8: isDone ? nil : open.offer?.record)
                .bind(outcome?.message ?? job.waiting?.message ?? (state == .pending ? job.previous?.text : nil))
                .bind(outcome == nil ? job.waiting?.cause.rawValue : outcome?.code)
                .bind(utf8: outputs.isEmpty ? nil : outputs.record)
            guard isNew else { return }
            row.bind(job.number).bind(job.rule).bind(blob: job.event.path.bytes)
                .bind(job.event.kind.rawValue).bind(utf8: job.event.record).bind(job.event.time.columnValue)
        }
    }

    /// Marks a job with an unreadable row as failed; the rest of the row is unchanged.
    func bury(_ id: [UInt8], at now: Int64) throws {
        try bury.run {
            $0.bind(utf8: id).bind(now)
                .bind("its row in the journal can't be read; 'alight apply' runs its rule for the file")
                .bind(JobEntry.unreadableCode)
        }
    }

    /// Shifts the due times of all open jobs, in nanoseconds.
    func moveDue(by shift: Int64) throws { try move.run { $0.bind(shift) } }

    /// Replaces the devices in the events of all jobs that may run again, within a transaction.
    func map(_ devices: [Int64: Int64], in database: Database) throws {
        guard !devices.isEmpty else { return }
        let update = try SQLStatement("UPDATE jobs SET event_json = ?2, progress = ?3 WHERE id = ?1", in: database)
        for condition in ["state IN ('pending', 'running')", "state = 'failed'"] {
            let select = try SQLStatement("SELECT id, event_json, progress FROM jobs WHERE \(condition)", in: database)
            let changed = try select.rows { row -> (id: String, event: [UInt8], progress: [UInt8]?)? in
                guard var event = FileEvent(record: row.blob(1)) else { return nil }
                var offer = row.optionalBlob(2).flatMap { Offer(record: $0) }
                event.map(devices)
                offer?.left?.identity.map(devices)
                let (text, progress) = (event.record, offer?.record ?? row.optionalBlob(2))
                return text == row.blob(1) && progress == row.optionalBlob(2) ? nil : (row.text(0), text, progress)
            }
            for row in changed { try update.run { $0.bind(row.id).bind(utf8: row.event).bind(utf8: row.progress) } }
        }
    }

    func delete(_ id: JobID) throws { try delete.run { $0.bind(id.description) } }
}

extension PreviousAttempt {
    /// The message of the attempt; its outcome if there is none.
    fileprivate var text: String {
        guard let message, !message.isEmpty else { return "attempt \(attempt) ended as '\(outcome)'" }
        return message
    }
}

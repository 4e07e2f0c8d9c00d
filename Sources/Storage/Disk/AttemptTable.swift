import FileEvents
import GRDB
import JSON
import PluginProtocol
import Records
import Rules
import System

/// The rows of attempts at jobs, with their logs and the changes that can be undone.
final class AttemptTable {
    private let insert: SQLStatement
    private let insertLog: SQLStatement
    private let forget: SQLStatement
    private let changes: SQLStatement
    private let undo: SQLStatement
    private let undone: SQLStatement

    init(_ database: Database) throws {
        insert = try SQLStatement(
            """
            INSERT OR REPLACE INTO attempts
                (job, started, number, duration, outcome, message, code, status, signal, log_of, request, changes)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """, in: database)
        insertLog = try SQLStatement("INSERT OR REPLACE INTO logs (job, started, text) VALUES (?, ?, ?)", in: database)
        // Deletes all but the last attempts at a job that is repeatedly not ready, except those that can be undone.
        forget = try SQLStatement(
            """
            DELETE FROM attempts WHERE job = ?1 AND changes IS NULL AND started <
                (SELECT started FROM attempts WHERE job = ?1 ORDER BY started DESC LIMIT 1 OFFSET 19)
            """, in: database)
        changes = try SQLStatement(
            """
            SELECT number, started, event_json, changes, attempts.undone, rule
            FROM attempts JOIN jobs ON jobs.id = attempts.job
            WHERE job = ? AND changes IS NOT NULL ORDER BY started DESC, number DESC
            """, in: database)
        undo = try SQLStatement(
            "UPDATE attempts SET undone = ?4 WHERE job = ?1 AND started = ?2 AND number = ?3", in: database)
        undone = try SQLStatement("UPDATE jobs SET undone = ?2 WHERE id = ?1", in: database)
    }

    /// Writes finished attempts; consecutive attempts of a batch share a log, which is stored with the first of them.
    func write(_ attempts: [(job: JobID, record: AttemptRecord)]) throws {
        var last: (record: AttemptRecord, logOwner: JobID?)?
        for (job, record) in attempts {
            let (outcome, started) = (record.outcome, record.started)
            var logOwner = outcome.log.isEmpty ? nil : job
            if let last, last.record.started == started, last.record.outcome.log == outcome.log {
                logOwner = last.logOwner
            }
            last = (record, logOwner)
            if logOwner == job {
                try insertLog.run { $0.bind(job.description).bind(started.columnValue).bind(outcome.log) }
            }
            try insert.run {
                $0.bind(job.description).bind(started.columnValue).bind(record.number)
                    .bind(record.duration.columnValue)
                    .bind(outcome.isInterrupted ? "interrupted" : outcome.result.rawValue)
                    .bind(outcome.message).bind(outcome.code)
                    .bind(outcome.process?.status).bind(outcome.process?.signal)
                    .bind(logOwner?.description).bind(outcome.process?.request)
                    .bind(utf8: outcome.changes.isEmpty ? nil : outcome.changes.record)
            }
            if outcome.result == .notReady { try forget.run { $0.bind(job.description) } }
        }
    }

    /// Stores the result of an undo with the attempt and with its job.
    func write(_ record: UndoRecord, of changes: RecordedChanges) throws {
        let job = changes.job.description
        try undo.run {
            $0.bind(job).bind(changes.started.columnValue).bind(changes.number).bind(utf8: record.record)
        }
        let undone = try Undone(self.changes(of: changes.job))
        try self.undone.run { $0.bind(job).bind(undone?.rawValue) }
    }

    /// Returns the changes of the attempts at a job that can be undone, the last attempt first.
    ///
    /// Unreadable rows are skipped.
    func changes(of job: JobID) throws -> [RecordedChanges] {
        try changes.rows({ $0.bind(job.description) }) { row in
            guard let event = FileEvent(record: row.blob(2)), let changes = [FileChange](record: row.blob(3)) else {
                return nil
            }
            let undo = row.optionalBlob(4).flatMap { UndoRecord(record: $0) }
            return RecordedChanges(
                job: job, rule: row.text(5), number: row.integer(0),
                started: Timestamp(columnValue: row.integer(1)),
                event: event, changes: changes, undo: undo?.reasons.count == changes.count ? undo : nil)
        }
    }
}

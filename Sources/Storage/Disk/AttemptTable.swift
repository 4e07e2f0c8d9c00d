import GRDB
import JSON
import Rules

/// The rows of attempts at jobs, with their logs and the changes that can be undone.
final class AttemptTable {
    private let insert: SQLStatement
    private let log: SQLStatement
    private let forget: SQLStatement
    private let changes: SQLStatement
    private let undo: SQLStatement
    private let undone: SQLStatement

    init(_ database: Database) throws {
        insert = try SQLStatement(AttemptRow.insert, in: database)
        log = try SQLStatement(AttemptRow.insertLog, in: database)
        forget = try SQLStatement(AttemptRow.forget, in: database)
        changes = try SQLStatement(KeptChanges.query, in: database)
        undo = try SQLStatement(
            "UPDATE attempts SET undone = ?4 WHERE job = ?1 AND started = ?2 AND number = ?3", in: database)
        undone = try SQLStatement("UPDATE jobs SET undone = ?2 WHERE id = ?1", in: database)
    }

    func write(_ row: AttemptRow) throws {
        if row.hasLog { try log.run { row.bindLog(to: $0) } }
        try insert.run { row.bind(to: $0) }
        if row.isOneOfMany { try forget.run { row.bindJob(to: $0) } }
    }

    /// Stores the result of an undo with the attempt and with its job.
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

    /// Returns the changes of the attempts at a job that can be undone, the last attempt first.
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
}

import FileEvents
import Foundation
import GRDB
import JSON
package import Rules
package import System

// Changes to files that can be undone.
extension JournalReader {
    /// Returns the jobs with changes that can be undone, in descending order of their last attempt.
    ///
    /// - Parameters:
    ///   - since: Only attempts that finished since then.
    ///   - rule: Only jobs of the rule with that name.
    /// - Returns: Their ids.
    /// - Throws: An error if the journal can't be read.
    package func jobsWithChanges(since: Timestamp?, rule: String?) throws(StorageError) -> [JobID] {
        try read { database in
            let sql = """
                SELECT job, max(started) AS last FROM attempts JOIN jobs ON jobs.id = attempts.job
                WHERE changes IS NOT NULL AND started + duration >= ? AND (? IS NULL OR jobs.rule = ?)
                GROUP BY job ORDER BY last DESC, job DESC
                """
            let arguments: StatementArguments = [since?.columnValue ?? .min, rule, rule]
            return try String.fetchAll(database, sql: sql, arguments: arguments).map { JobID($0) }
        }
    }

    /// Returns the changes of the attempts at a job that can be undone, the last attempt first.
    package func changes(of job: JobID) throws(StorageError) -> [KeptChanges] {
        try read { database in
            try Row.fetchAll(database, sql: KeptChanges.query, arguments: [job.description]).compactMap { row in
                KeptChanges(
                    job: job, rule: row[5], number: row[0], started: row[1], facts: (row[2] as String).utf8.map { $0 },
                    changes: (row[3] as String).utf8.map { $0 }, undone: (row[4] as String?)?.utf8.map { $0 })
            }
        }
    }
}

extension KeptChanges {
    /// The columns of the attempts at a job.
    static let query = """
        SELECT number, started, facts, changes, attempts.undone, rule FROM attempts JOIN jobs ON jobs.id = attempts.job
        WHERE job = ? AND changes IS NOT NULL ORDER BY started DESC, number DESC
        """

    /// Reads such a row; nil if it is unreadable.
    init?(
        job: JobID, rule: String, number: Int64, started: Int64, facts: [UInt8], changes: [UInt8], undone: [UInt8]?
    ) {
        guard let event = FileEvent(record: facts), let changes = [FileChange](record: changes)
        else { return nil }
        let undo = undone.flatMap { UndoRecord(record: $0) }
        self.init(
            job: job, rule: rule, number: Int(number), started: Timestamp(columnValue: started), event: event,
            changes: changes,
            undo: undo?.reasons.count == changes.count ? undo : nil)
    }
}

import Foundation
import GRDB
import Rules
package import System

/// The entries of a journal for one path and one rule.
package struct PathRecord: Sendable, Hashable {
    /// Whether the path is in the ledger of the rule: its action received it, or it was recorded as existing.
    package var isKnown = false
    /// The pending and running jobs, in the order of their creation.
    package var open: [JobEntry] = []
    /// The finished jobs, the newest first.
    package var ended: [JobEntry] = []

    package init() {}
}

extension JournalReader {
    /// Returns the entries for a path, by rule name; rules without any are omitted.
    ///
    /// - Parameters:
    ///   - path: The path.
    ///   - rules: The names of the rules.
    ///   - limit: The maximum number of finished jobs per rule.
    /// - Returns: The entries of each rule.
    /// - Throws: An error if the journal can't be read.
    package func records(
        of path: PathBytes, rules: [String], limit: Int
    ) throws(StorageError) -> [String: PathRecord] {
        let wanted = Set(rules)
        let key = Data(path.bytes)
        return try read { database in
            var records: [String: PathRecord] = [:]
            let known = """
                SELECT name FROM rules JOIN ledger ON ledger.rule = rules.id
                WHERE ledger.path = ? AND ledger.type IS NOT NULL
                """
            for name in try String.fetchAll(database, sql: known, arguments: [key]) where wanted.contains(name) {
                records[name, default: PathRecord()].isKnown = true
            }
            let jobs = "SELECT \(Self.columns) FROM jobs WHERE path = ? ORDER BY id DESC"
            let rows = try Row.fetchCursor(database, sql: jobs, arguments: [key])
            while let row = try rows.next() {
                let job = Self.job(row)
                guard wanted.contains(job.rule) else { continue }
                var record = records[job.rule] ?? PathRecord()
                switch job.state {
                case .pending, .running: record.open.insert(job, at: 0)
                case .succeeded, .skipped, .failed: if record.ended.count < limit { record.ended.append(job) }
                }
                records[job.rule] = record
            }
            return records
        }
    }
}

extension DiskStore {
    /// The unfinished jobs, in the order of their creation.
    package func openJobs() -> [JobEntry] { (try? look(JournalReader.openJobs)) ?? [] }
}

extension JournalReader {
    fileprivate static func openJobs(_ database: Database) throws -> [JobEntry] {
        let sql = "SELECT \(columns) FROM jobs WHERE state IN ('pending', 'running') ORDER BY id"
        return try Row.fetchAll(database, sql: sql).map(job)
    }
}

import FileEvents
import Foundation
import GRDB
import Rules
package import System

/// What a journal says of one path and one rule.
package struct PathRecord: Sendable, Hashable {
    /// Whether the rule has been told of the path, or has taken it as known.
    package var isKnown = false
    /// The jobs that are pending or running, in the order of their making.
    package var open: [JobEntry] = []
    /// The jobs that have ended, the newest first.
    package var ended: [JobEntry] = []

    package init() {}
}

extension JournalReader {
    /// What is known of a path, by the names of rules; what is not known of any has no entry.
    ///
    /// - Parameters:
    ///   - path: The path.
    ///   - rules: The rules, by their names.
    ///   - limit: Most of the jobs that have ended, for each rule.
    /// - Returns: What is known of it to each of them.
    /// - Throws: When the journal can't be read.
    package func records(
        of path: PathBytes, rules: [String], limit: Int
    ) throws(JournalFault) -> [String: PathRecord] {
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
                case .succeeded, .skipped, .dead: if record.ended.count < limit { record.ended.append(job) }
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

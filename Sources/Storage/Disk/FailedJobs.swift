import FileEvents
import GRDB
import Rules
import System

/// The failed jobs that finish as superseded once a later job of their rule and path succeeds; of a batch, once that
/// has happened to all of its files.
///
/// Used under the lock of the journal.
final class FailedJobs {
    /// The names of the rules that may have such jobs; a success of another rule reads nothing.
    private var rules: Set<String>
    private let mark: SQLStatement
    private let supersede: SQLStatement
    private let firstOf: SQLStatement
    private let close: SQLStatement

    init(_ database: Database) throws {
        let ofPath = "state = 'failed' AND failed_with IS NOT NULL"
        let names = try SQLStatement("SELECT DISTINCT rule FROM jobs WHERE \(ofPath)", in: database)
        rules = try Set(names.rows { $0.text(0) })
        mark = try SQLStatement("UPDATE jobs SET failed_with = ?2 WHERE id = ?1", in: database)
        supersede = try SQLStatement(
            """
            UPDATE jobs SET superseded_by = ?4 WHERE \(ofPath) AND rule = ?1 AND path = ?2 AND position < ?3
            RETURNING failed_with
            """, in: database)
        firstOf = try SQLStatement("SELECT failed_with FROM jobs WHERE id = ?", in: database)
        close = try SQLStatement(
            """
            UPDATE jobs SET state = 'skipped', ended = ?2, steps = NULL, progress = NULL, code = 'superseded',
                message = 'a later job of the file has succeeded: ' || superseded_by
            WHERE state = 'failed' AND failed_with = ?1 AND NOT EXISTS (
                SELECT 1 FROM jobs AS other
                WHERE other.state = 'failed' AND other.failed_with = ?1 AND other.superseded_by IS NULL)
            RETURNING id
            """, in: database)
    }

    /// Whether no job waits for a later success.
    var isEmpty: Bool { rules.isEmpty }

    /// Records a job whose row was written as failed.
    func add(_ job: Job, failedWith first: JobID?) throws {
        try mark.run { $0.bind(job.id.description).bind(first?.description) }
        if first != nil { rules.insert(job.rule) }
    }

    /// Finishes the earlier failed jobs of the path of a job that has succeeded.
    ///
    /// - Parameters:
    ///   - job: The job.
    ///   - names: The names under which jobs of its rule are stored.
    ///   - now: The current time.
    /// - Returns: The finished jobs.
    /// - Throws: The error of the database.
    func finish(supersededBy job: Job, names: [String], at now: Int64) throws -> [JobID] {
        let id = job.id.description
        var batches: Set<String> = []
        for name in names where rules.contains(name) {
            try batches.formUnion(
                supersede.rows({ $0.bind(name).bind(blob: job.event.path.bytes).bind(job.number).bind(id) }) {
                    $0.text(0)
                })
        }
        // The job itself may be the last of a batch that a user has retried.
        if !names.allSatisfy({ !rules.contains($0) }), let own = try batch(of: id) { batches.insert(own) }
        return try batches.sorted().flatMap { try finish($0, at: now) }
    }

    /// Returns the first job of the attempt with which a job has failed.
    func batch(of id: String) throws -> String? { try firstOf.first({ $0.bind(id) }) { $0.optionalText(0) } ?? nil }

    /// Finishes the jobs of a batch if all that are still failed are superseded.
    func finish(_ batch: String, at now: Int64) throws -> [JobID] {
        try close.rows({ $0.bind(batch).bind(now) }) { JobID($0.text(0)) }
    }
}

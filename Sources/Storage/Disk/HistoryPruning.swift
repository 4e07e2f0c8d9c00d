import GRDB
import Records
import Rules
import System

/// The limits of the history of jobs that have succeeded or were skipped.
package struct JournalRetention: Sendable {
    /// The retention period.
    package var period: Duration
    /// The maximum number of jobs.
    package var jobs: Int
    /// The maximum size in bytes of their events, requests, messages and logs.
    package var bytes: Int64

    package init(period: Duration = .seconds(30 * 24 * 3600), jobs: Int = 100_000, bytes: Int64 = 256 << 20) {
        (self.period, self.jobs, self.bytes) = (period, jobs, bytes)
    }

    /// Deletes nothing: for a command that opens the journal briefly and does not know the configured limits.
    package static let unlimited = JournalRetention(period: .seconds(36_500 * 86_400), jobs: .max, bytes: .max)
}

/// Deletes finished jobs in small batches, each in a separate transaction.
///
/// Used under the lock of the store.
final class HistoryPruning {
    /// The number of jobs that finish between two deletions.
    private let interval: Int
    /// The base of the maximum number of jobs to delete at once; twice the number of newly finished jobs is added.
    private static let step = 64
    /// The number of free pages that a file keeps for reuse.
    private static let freePages = 1_024

    private struct Progress {
        /// The number of jobs that have succeeded or were skipped.
        var count: Int
        /// The size of their strings in bytes; nil while the whole file is within the limit.
        var bytes: Int64?
        /// The time up to which only failed jobs remain, which are not deleted.
        var cursor: Int64 = .min
        /// The earliest finish time of a job that may be deleted, or an earlier time.
        ///
        /// SQLite plans the query for those jobs again at each new bound, which takes as long as the rest of a small
        /// commit.
        var first: Int64 = .min
        /// The jobs that have finished since the last deletion.
        var ended: [JobID] = []
    }

    private let retention: JournalRetention
    private let oldest: SQLStatement
    private let earliest: SQLStatement
    private let delete: SQLStatement
    private let size: SQLStatement
    private let pageSize: Int64
    /// The files that are removed with their jobs; nil for a store in memory.
    private let kept: KeptFiles?
    /// The jobs that the current transaction deletes.
    private var deleted: [String] = []
    private var progress: Progress

    init(_ database: Database, _ retention: JournalRetention, _ kept: KeptFiles?) throws {
        (self.retention, self.kept) = (retention, kept)
        interval = max(1, min(16, retention.jobs / 16))
        oldest = try SQLStatement(
            """
            SELECT id, ended FROM jobs
            WHERE state IN ('succeeded', 'skipped') AND ended >= ? AND ended <= ?
            ORDER BY ended LIMIT ?
            """, in: database)
        earliest = try SQLStatement("SELECT min(ended) FROM jobs WHERE state IN ('succeeded', 'skipped')", in: database)
        delete = try SQLStatement("DELETE FROM jobs WHERE id = ?", in: database)
        size = try SQLStatement("SELECT \(Self.jobBytes) FROM jobs WHERE id = ?", in: database)
        pageSize = try Int64.fetchOne(database, sql: "PRAGMA page_size") ?? 0
        progress = Progress(
            count: try Int.fetchOne(
                database, sql: "SELECT count(*) FROM jobs WHERE state IN ('succeeded', 'skipped')") ?? 0)
    }

    /// The log of a batch counts for the job with which it is stored.
    private static let jobBytes = """
        length(CAST(event_json AS BLOB))
            + (SELECT coalesce(sum(length(CAST(message AS BLOB)) + coalesce(length(CAST(request AS BLOB)), 0)
                + coalesce(length(CAST(changes AS BLOB)), 0)), 0) FROM attempts WHERE job = jobs.id)
            + (SELECT coalesce(sum(length(CAST(text AS BLOB))), 0) FROM logs WHERE job = jobs.id)
        """

    /// Deletes jobs beyond the limits if enough jobs have finished since the last time; called after each commit.
    ///
    /// After an error the next call tries again.
    ///
    /// - Parameters:
    ///   - database: The connection, outside of a transaction.
    ///   - transaction: The transaction to use.
    ///   - ended: The jobs written by the commit that have succeeded or were skipped.
    ///   - now: The current time.
    func prune(_ database: Database, in transaction: StoreTransaction, ended: [JobID], at now: Int64) {
        progress.ended += ended
        // The clock may have been set back.
        if !ended.isEmpty { progress.first = min(progress.first, now) }
        guard progress.ended.count >= interval || progress.first <= now - retention.period.columnValue else { return }
        let before = progress
        deleted = []
        do {
            try transaction.write { try prune(database, at: now) }
            kept?.remove(of: deleted)
        } catch {
            progress = before
        }
    }

    /// Removes the files of the jobs that a commit has deleted.
    func removeKept(of changes: TurnChanges) {
        guard let kept else { return }
        let jobs = changes.jobs.filter { $0.value.open == nil }
        if !jobs.isEmpty { kept.remove(of: jobs.map(\.key.description)) }
    }

    private func prune(_ database: Database, at now: Int64) throws {
        let ended = progress.ended
        progress.ended = []
        progress.count += ended.count
        let freePages = try Int64.fetchOne(database, sql: "PRAGMA freelist_count") ?? 0
        let usedPages = try (Int64.fetchOne(database, sql: "PRAGMA page_count") ?? 0) - freePages
        if let bytes = progress.bytes {
            progress.bytes = try ended.reduce(bytes) { try $0 + self.bytes(of: $1.description) }
        } else {
            let sql = "SELECT coalesce(sum(\(Self.jobBytes)), 0) FROM jobs WHERE state IN ('succeeded', 'skipped')"
            progress.bytes = try usedPages * pageSize > retention.bytes ? Int64.fetchOne(database, sql: sql) : nil
        }
        let most = Self.step + 2 * ended.count
        let excess = min(max(0, progress.count - retention.jobs), most)
        let end = now - retention.period.columnValue
        if progress.first <= end {
            try delete(until: end, most)
            if deleted.count < most {
                progress.first = try earliest.first({ _ in }) { $0.optionalInteger(0) ?? now } ?? now
            }
        }
        try delete(until: .max, excess)
        if let bytes = progress.bytes, bytes > retention.bytes {
            try delete(until: .max, most) { [retention] in $0 > retention.bytes }
        }
        progress.count -= deleted.count
        if freePages > Self.freePages { try database.execute(sql: "PRAGMA incremental_vacuum(\(Self.step))") }
    }

    private func bytes(of id: String) throws -> Int64 { try size.first({ $0.bind(id) }, { $0.integer(0) }) ?? 0 }

    /// Deletes the oldest jobs while the remaining size is too large, up to a number in this transaction.
    private func delete(until end: Int64, _ most: Int, while isTooMany: (Int64) -> Bool = { _ in true }) throws {
        guard deleted.count < most else { return }
        let oldest = try oldest.rows({ $0.bind(progress.cursor).bind(end).bind(most - deleted.count) }) {
            ($0.text(0), $0.integer(1) as Int64)
        }
        for (id, ended) in oldest {
            if let bytes = progress.bytes {
                guard isTooMany(bytes) else { break }
                progress.bytes = try bytes - self.bytes(of: id)
            }
            try delete.run { $0.bind(id) }
            progress.cursor = ended
            deleted.append(id)
        }
    }
}

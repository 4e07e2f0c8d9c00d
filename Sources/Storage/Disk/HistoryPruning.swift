import GRDB
import Rules

/// How much is kept of jobs that have succeeded or were skipped.
package struct JournalRetention: Sendable {
    /// How long they are kept.
    package var period: Duration
    /// How many are kept at most.
    package var jobs: Int
    /// How many bytes at most what they were told, asked and wrote may take.
    package var bytes: Int64

    package init(period: Duration = .seconds(30 * 24 * 3600), jobs: Int = 100_000, bytes: Int64 = 256 << 20) {
        self.period = period
        self.jobs = jobs
        self.bytes = bytes
    }

    /// Forgets nothing: for whoever has the journal for a moment, and does not know what is to be kept.
    package static let unlimited = JournalRetention(period: .seconds(36_500 * 86_400), jobs: .max, bytes: .max)
}

/// Forgets finished jobs, a few in each commit.
///
/// Whoever holds the journal's lock may use it.
final class HistoryPruning {
    /// How many are forgotten in one commit at least, when there are so many.
    private static let step = 64
    /// The free pages that a file may have, to be used again.
    private static let freePages = 1_024

    private let retention: JournalRetention
    private let oldest: SQLStatement
    private let earliest: SQLStatement
    private let delete: SQLStatement
    private let free: SQLStatement
    private let size: SQLStatement
    private let vacuum: SQLStatement
    private let pages: SQLStatement
    /// How many jobs there are that have succeeded or were skipped.
    private var count: Int
    private var countAfterCommit: Int
    /// How many bytes of text they have; nil as long as the whole file has no more than they may have.
    private var bytes: Int64?
    private var bytesAfterCommit: Int64?
    private let pageSize: Int64
    /// Until when only dead jobs have ended, which stay.
    private var cursor: Int64 = .min
    private var cursorAfterCommit: Int64 = .min
    /// None of those has ended before this, that may be forgotten.
    ///
    /// SQLite plans the query for them anew for each bound, which takes as long as the rest of a small commit.
    private var first: Int64 = .min
    private var firstAfterCommit: Int64 = .min

    init(_ database: Database, _ retention: JournalRetention) throws {
        self.retention = retention
        oldest = try SQLStatement(
            """
            SELECT id, ended FROM jobs
            WHERE state IN ('succeeded', 'skipped') AND ended >= ? AND ended <= ?
            ORDER BY ended LIMIT ?
            """, in: database)
        earliest = try SQLStatement(
            "SELECT min(ended) FROM jobs WHERE state IN ('succeeded', 'skipped')", in: database)
        delete = try SQLStatement("DELETE FROM jobs WHERE id = ?", in: database)
        free = try SQLStatement("PRAGMA freelist_count", in: database)
        size = try SQLStatement(
            """
            SELECT \(Self.jobBytes) FROM jobs WHERE id = ?
            """, in: database)
        pages = try SQLStatement("PRAGMA page_count", in: database)
        pageSize = try Int64.fetchOne(database, sql: "PRAGMA page_size") ?? 0
        vacuum = try SQLStatement("PRAGMA incremental_vacuum(\(Self.step))", in: database)
        count =
            try Int.fetchOne(
                database,
                sql: "SELECT count(*) FROM jobs WHERE state IN ('succeeded', 'skipped')") ?? 0
        countAfterCommit = count
    }

    /// The log of a batch counts for the job that it is stored with.
    private static let jobBytes = """
        length(CAST(facts AS BLOB))
            + (SELECT coalesce(sum(length(CAST(message AS BLOB)) + coalesce(length(CAST(request AS BLOB)), 0)
                + coalesce(length(CAST(changes AS BLOB)), 0)), 0) FROM attempts WHERE job = jobs.id)
            + (SELECT coalesce(sum(length(CAST(text AS BLOB))), 0) FROM logs WHERE job = jobs.id)
        """

    /// How many bytes of text all have, by reading them.
    private static func bytes(_ database: Database) throws -> Int64 {
        try Int64.fetchOne(
            database,
            sql: """
                SELECT coalesce(sum(\(jobBytes)), 0) FROM jobs WHERE state IN ('succeeded', 'skipped')
                """) ?? 0
    }

    /// Forgets some of what is old, within a transaction.
    ///
    /// - Parameters:
    ///   - database: Where it is.
    ///   - ended: The jobs that have succeeded or were skipped since the last commit.
    ///   - now: The present.
    /// - Throws: What SQLite throws; nothing counts until the commit.
    func prune(_ database: Database, ended: [JobID], at now: Int64) throws {
        (countAfterCommit, cursorAfterCommit) = (count + ended.count, cursor)
        let freePages = try free.first({ _ in }) { $0.integer(0) } ?? 0
        let usedPages = try (pages.first({ _ in }) { $0.integer(0) } ?? 0) - freePages
        if let bytes {
            bytesAfterCommit = try ended.reduce(bytes) { try $0 + self.bytes(of: $1.description) }
        } else {
            bytesAfterCommit = usedPages * pageSize > retention.bytes ? try Self.bytes(database) : nil
        }
        let most = Self.step + 2 * ended.count
        let excess = min(max(0, countAfterCommit - retention.jobs), most)
        // The clock may have been set back.
        if !ended.isEmpty { first = min(first, now) }
        let end = now - retention.period.columnValue
        var gone = 0
        firstAfterCommit = first
        if first <= end {
            gone = try forget(until: end, most)
            if gone < most { firstAfterCommit = try earliest.first({ _ in }) { $0.optionalInteger(0) ?? now } ?? now }
        }
        if gone < excess { gone += try forget(until: .max, excess - gone) }
        if gone < most, let bytesAfterCommit, bytesAfterCommit > retention.bytes {
            gone += try forget(until: .max, most - gone) { [retention] in $0 > retention.bytes }
        }
        countAfterCommit -= gone
        if freePages > Self.freePages { try vacuum.run() }
    }

    private func bytes(of id: String) throws -> Int64 { try size.first({ $0.bind(id) }, { $0.integer(0) }) ?? 0 }

    /// Forgets the oldest, as long as the bytes that are left are too many.
    private func forget(until end: Int64, _ most: Int, while isTooMany: (Int64) -> Bool = { _ in true }) throws -> Int {
        var oldest: [(id: String, ended: Int64)] = []
        try self.oldest.each {
            $0.bind(cursorAfterCommit)
            $0.bind(end)
            $0.bind(Int64(most))
        } _: { row in
            oldest.append((row.text(0), row.integer(1)))
        }
        var gone = 0
        for (id, ended) in oldest {
            if let bytes = bytesAfterCommit {
                guard isTooMany(bytes) else { break }
                bytesAfterCommit = try bytes - self.bytes(of: id)
            }
            try delete.run { $0.bind(id) }
            cursorAfterCommit = ended
            gone += 1
        }
        return gone
    }

    func noteCommitted() {
        (count, bytes, cursor, first) = (countAfterCommit, bytesAfterCommit, cursorAfterCommit, firstAfterCommit)
    }
}

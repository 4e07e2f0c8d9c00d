import GRDB

/// How much is kept of jobs that have succeeded or were skipped.
package struct JournalRetention: Sendable {
    /// How long they are kept.
    package var period: Duration
    /// How many are kept at most.
    package var jobs: Int

    package init(period: Duration = .seconds(30 * 24 * 3600), jobs: Int = 100_000) {
        self.period = period
        self.jobs = jobs
    }
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
    private let delete: SQLStatement
    private let free: SQLStatement
    private let vacuum: SQLStatement
    /// How many jobs there are that have succeeded or were skipped.
    private var count: Int
    private var countAfterCommit: Int
    /// Until when only dead jobs have ended, which stay.
    private var cursor: Int64 = .min
    private var cursorAfterCommit: Int64 = .min

    init(_ database: Database, _ retention: JournalRetention) throws {
        self.retention = retention
        oldest = try SQLStatement(
            """
            SELECT id, ended FROM jobs
            WHERE state IN ('succeeded', 'skipped') AND ended >= ? AND ended <= ?
            ORDER BY ended LIMIT ?
            """, in: database)
        delete = try SQLStatement("DELETE FROM jobs WHERE id = ?", in: database)
        free = try SQLStatement("PRAGMA freelist_count", in: database)
        vacuum = try SQLStatement("PRAGMA incremental_vacuum(\(Self.step))", in: database)
        count =
            try Int.fetchOne(
                database,
                sql: "SELECT count(*) FROM jobs WHERE state IN ('succeeded', 'skipped')") ?? 0
        countAfterCommit = count
    }

    /// Forgets some of what is old, within a transaction.
    func prune(ended: Int, at now: Int64) throws {
        (countAfterCommit, cursorAfterCommit) = (count + ended, cursor)
        let most = Self.step + 2 * ended
        let excess = min(max(0, countAfterCommit - retention.jobs), most)
        var gone = try forget(until: now - retention.period.columnValue, most)
        if gone < excess { gone += try forget(until: .max, excess - gone) }
        countAfterCommit -= gone
        let freePages = try free.first({ _ in }) { Int($0.integer(0)) } ?? 0
        if freePages > Self.freePages { try vacuum.run() }
    }

    private func forget(until end: Int64, _ most: Int) throws -> Int {
        var ids: [String] = []
        try oldest.each {
            $0.bind(cursorAfterCommit)
            $0.bind(end)
            $0.bind(Int64(most))
        } _: { row in
            ids.append(row.text(0))
            cursorAfterCommit = row.integer(1)
        }
        for id in ids { try delete.run { $0.bind(id) } }
        return ids.count
    }

    func noteCommitted() { (count, cursor) = (countAfterCommit, cursorAfterCommit) }
}

import GRDB
import GRDBSQLite
import PluginProtocol
import Rules
import Storage
import Testing

/// Query plans: repeated queries of the journal use an index, whatever its size.
struct QueryPlanTests {
    /// The full scans that are allowed, each at a start.
    private static let allowed: Set<String> = [
        // All open jobs, by a partial index that has no others.
        "SCAN jobs USING INDEX jobs_open"
    ]

    /// The tables that grow.
    private static let large = ["jobs", "ledger", "due", "attempts", "logs", "makers"]

    @Test func `no prepared statement scans a whole table`() throws {
        let bench = StoreBench()
        try bench.end(.leased(1), .succeeded, Outcome(.notReady), isNew: true)
        let plans = try bench.store.query(Self.plans)
        // The list includes the statements of the hot path.
        for word in [
            "INSERT INTO jobs", "UPDATE jobs", "INSERT OR REPLACE INTO attempts", "DELETE FROM attempts",
            "FROM ledger WHERE rule = ? AND path = ?", "INDEXED BY ledger_by_identity", "INSERT INTO ledger",
            "DELETE FROM ledger", "ORDER BY ended", "code = 'ready'", "FROM due", "AND rule = ? ORDER BY position",
            "FROM makers WHERE output = ?",
        ] {
            #expect(plans.contains { $0.sql.contains(word) }, "no statement with '\(word)'")
        }
        for (sql, plan) in plans {
            for step in plan {
                let isWhole = step.hasPrefix("SCAN") || step.contains("TEMP B-TREE")
                #expect(!isWhole || Self.allowed.contains(step), "\(step): \(sql)")
            }
        }
    }

    /// Returns the prepared statements on large tables, with the steps of each.
    private static func plans(_ database: Database) -> [(sql: String, steps: [String])] {
        var statements: [String] = []
        var next = sqlite3_next_stmt(database.sqliteConnection, nil)
        while let statement = next {
            statements.append(String(cString: sqlite3_sql(statement)))
            next = sqlite3_next_stmt(database.sqliteConnection, statement)
        }
        return statements.filter { large.contains(where: $0.contains) }.map {
            ($0, plan($0, database.sqliteConnection))
        }
    }

    /// Returns the query plan of a statement, one line per step.
    private static func plan(_ sql: String, _ connection: OpaquePointer?) -> [String] {
        var explained: OpaquePointer?
        guard sqlite3_prepare_v2(connection, "EXPLAIN QUERY PLAN \(sql)", -1, &explained, nil) == SQLITE_OK else {
            return ["SCAN: it can't be explained"]
        }
        defer { sqlite3_finalize(explained) }
        var steps: [String] = []
        while sqlite3_step(explained) == SQLITE_ROW { steps.append(String(cString: sqlite3_column_text(explained, 3))) }
        return steps
    }
}

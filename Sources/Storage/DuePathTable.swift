import FileEvents
import GRDB
import JSON
import Records
import System

/// The due paths that the comparison at the start would not find.
struct DuePathTable {
    private let insert: SQLStatement
    private let delete: SQLStatement
    private let byRule: SQLStatement
    private let errors: ReadErrors

    init(_ database: Database, _ errors: ReadErrors) throws {
        self.errors = errors
        insert = try SQLStatement("INSERT OR REPLACE INTO due VALUES (?, ?, ?)", in: database)
        delete = try SQLStatement("DELETE FROM due WHERE rule = ? AND path = ?", in: database)
        byRule = try SQLStatement("SELECT path, writer FROM due WHERE rule = ? ORDER BY path", in: database)
    }

    /// Returns the paths of a rule, sorted.
    func paths(of rule: RuleID) throws -> [StoredDuePath] {
        try byRule.rows({ $0.bind(rule.number) }) { row in
            try errors.row { try row.path(0, of: "due") }.map { path in
                StoredDuePath(path: path, writer: row.optionalBlob(1).flatMap { Writer(record: $0) })
            }
        }
    }

    func write(_ change: DueChange, of rule: RuleID, at path: PathBytes) throws {
        guard case .stored(let writer) = change else { return try delete.run { $0.bind(rule, path) } }
        try insert.run { $0.bind(rule, path).bind(utf8: writer?.record) }
    }
}

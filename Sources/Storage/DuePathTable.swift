import FileEvents
package import GRDB
import JSON
package import Reconciling
package import System

/// The due paths that the comparison at the start would not find.
package struct DuePathTable {
    private let insert: SQLStatement
    private let delete: SQLStatement
    private let byRule: SQLStatement
    private let errors: ReadErrors

    package init(_ database: Database, _ errors: ReadErrors) throws {
        self.errors = errors
        insert = try SQLStatement("INSERT OR REPLACE INTO due VALUES (?, ?, ?)", in: database)
        delete = try SQLStatement("DELETE FROM due WHERE rule = ? AND path = ?", in: database)
        byRule = try SQLStatement("SELECT path, writer FROM due WHERE rule = ? ORDER BY path", in: database)
    }

    /// Returns the paths of a rule, sorted.
    package func paths(of rule: RuleID) throws -> [StoredDuePath] {
        var paths: [StoredDuePath] = []
        try byRule.each {
            $0.bind(rule.number)
        } _: { row in
            guard let path = try errors.row({ try row.path(0, of: "due") }) else { return }
            paths.append(StoredDuePath(path: path, writer: row.utf8(1).flatMap { Writer(record: $0) }))
        }
        return paths
    }

    package func write(_ change: DueChange, of rule: RuleID, at path: PathBytes) throws {
        guard case .stored(let writer) = change else { return try delete.run { $0.bind(rule, path) } }
        try insert.run {
            $0.bind(rule, path)
            $0.bind(utf8: writer?.record)
        }
    }
}

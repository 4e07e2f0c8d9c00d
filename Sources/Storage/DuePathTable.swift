package import FileEvents
package import GRDB
package import Reconciling

/// The due paths that the comparison at startup would not find.
package struct DuePathTable {
    private let insert: SQLStatement
    private let delete: SQLStatement
    private let byRule: SQLStatement
    private let errors: ReadErrors

    package init(_ database: Database, _ errors: ReadErrors) throws {
        self.errors = errors
        insert = try SQLStatement("INSERT OR IGNORE INTO due VALUES (?, ?)", in: database)
        delete = try SQLStatement("DELETE FROM due WHERE rule = ? AND path = ?", in: database)
        byRule = try SQLStatement("SELECT path FROM due WHERE rule = ? ORDER BY path", in: database)
    }

    /// The paths of a rule, sorted.
    package func paths(of rule: RuleID) throws -> [PathBytes] {
        var paths: [PathBytes] = []
        try byRule.each {
            $0.bind(rule.number)
        } _: { row in
            if let path = try errors.row({ try row.path(0, of: "due") }) { paths.append(path) }
        }
        return paths
    }

    package func write(_ isDue: Bool, of rule: RuleID, at path: PathBytes) throws {
        try (isDue ? insert : delete).run { $0.bind(rule, path) }
    }
}

import GRDB
package import System

/// The file from which an output was made, and the rule.
package struct OutputMaker: Sendable, Hashable {
    /// The name of the rule.
    package var rule: String
    package var source: PathBytes

    package init(rule: String, source: PathBytes) { (self.rule, self.source) = (rule, source) }
}

/// The rows of the outputs of plugins.
struct MakerTable {
    private let byOutput: SQLStatement
    private let insert: SQLStatement

    init(_ database: Database) throws {
        byOutput = try SQLStatement("SELECT rule, source FROM makers WHERE output = ?", in: database)
        insert = try SQLStatement("INSERT OR REPLACE INTO makers VALUES (?, ?, ?)", in: database)
    }

    func maker(of output: PathBytes) throws -> (rule: Int64, source: PathBytes)? {
        try byOutput.first({ $0.bind(blob: output.bytes) }) {
            (rule: $0.integer(0), source: try $0.path(1, of: "makers"))
        }
    }

    func write(_ output: PathBytes, rule: Int64, source: PathBytes) throws {
        try insert.run { $0.bind(blob: output.bytes).bind(rule).bind(blob: source.bytes) }
    }
}

import GRDB
import System

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

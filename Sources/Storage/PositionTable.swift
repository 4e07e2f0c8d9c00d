import FileEvents
import GRDB
import Records
import System

/// The read positions of files that have left their paths and were not found under another one yet.
struct PositionTable {
    private let insert: SQLStatement
    private let delete: SQLStatement
    private let byRule: SQLStatement

    init(_ database: Database) throws {
        insert = try SQLStatement("INSERT OR REPLACE INTO positions VALUES (?, ?, ?, ?, ?, ?, ?)", in: database)
        delete = try SQLStatement(
            "DELETE FROM positions WHERE rule = ? AND inode = ? AND device = ? AND btime = ?", in: database)
        byRule = try SQLStatement(
            "SELECT inode, device, btime, ctime, ctime_ns, delivered FROM positions WHERE rule = ?", in: database)
    }

    /// Returns the positions of a rule; `devices` has the current device numbers by those in rows of earlier runs.
    func positions(of rule: RuleID, on devices: [Int64: Int64]) throws -> [FileIdentity: ReadPosition] {
        let rows = try byRule.rows({ $0.bind(rule.number) }) { row in
            let inode = UInt64(bitPattern: row.integer(0))
            let device = devices[row.integer(1)] ?? row.integer(1)
            let position = ReadPosition(changed: row.timestamp(3), delivered: UInt64(bitPattern: row.integer(5)))
            return (FileIdentity(device: device, inode: inode, birth: row.integer(2)), position)
        }
        return Dictionary(rows) { max($0, $1) }
    }

    func write(_ position: ReadPosition?, of file: FileIdentity, _ rule: RuleID) throws {
        guard let position else { return try delete.run { $0.bind(rule, file) } }
        try insert.run {
            $0.bind(rule, file).bind(position.changed).bind(Int64(bitPattern: position.delivered))
        }
    }
}

extension SQLStatement {
    @discardableResult fileprivate func bind(_ rule: RuleID, _ file: FileIdentity) -> SQLStatement {
        bind(rule.number).bind(Int64(bitPattern: file.inode)).bind(file.device).bind(file.birth)
    }
}

import FileEvents
import GRDB
import JSON
import System

/// The ledger rows, indexed by path and by file.
struct LedgerTable {
    private let byPath: SQLStatement
    private let byInode: SQLStatement
    private let page: SQLStatement
    private let upsert: SQLStatement
    private let delete: SQLStatement
    private let errors: ReadErrors
    /// The number of this run; the mount ids in rows of earlier runs are invalid.
    private let run: Int64
    /// The current device numbers, keyed by those in rows of earlier runs.
    var devices: [Int64: Int64] = [:]

    private static let columns = """
        type, size, mtime, mtime_ns, ctime, ctime_ns, btime, btime_ns, device, inode, mode, uid, gid, nlink, mount, \
        run, digest, delivered, xattrs, trust, suppressed
        """
    private static let pathColumn: Int32 = 21

    init(_ database: Database, run: Int64, _ errors: ReadErrors) throws {
        self.run = run
        self.errors = errors
        let names = Self.columns.split(separator: ", ")
        byPath = try SQLStatement("SELECT \(Self.columns) FROM ledger WHERE rule = ? AND path = ?", in: database)
        byInode = try SQLStatement(
            """
            SELECT \(Self.columns), path FROM ledger INDEXED BY ledger_by_identity WHERE inode = ? AND rule = ?
            """, in: database)
        page = try SQLStatement(
            """
            SELECT \(Self.columns), path FROM ledger WHERE rule = ? AND path >= ? AND path < ? ORDER BY path LIMIT 256
            """, in: database)
        upsert = try SQLStatement(
            """
            INSERT INTO ledger (rule, path, \(Self.columns)) VALUES (?, ?\(String(repeating: ", ?", count: names.count)))
            ON CONFLICT (rule, path) DO UPDATE SET \(names.map { "\($0) = excluded.\($0)" }.joined(separator: ", "))
            """, in: database)
        delete = try SQLStatement("DELETE FROM ledger WHERE rule = ? AND path = ?", in: database)
    }

    // MARK: Reading

    func row(of rule: RuleID, at path: PathBytes) throws -> LedgerRow? {
        try byPath.first({ $0.bind(rule, path) }, self.row)
    }

    func paths(of rule: RuleID, handling identity: FileIdentity, limit: Int) throws -> [PathBytes] {
        try byInode.rows({ $0.bind(Int64(bitPattern: identity.inode)).bind(rule.number) }, limit: limit) { row in
            let handled = try errors.row { (try row.path(Self.pathColumn), try self.row(row).handled) }
            guard case (let path, let snapshot?)? = handled else { return nil }
            return identity.includes(snapshot.identity) ? path : nil
        }
    }

    func rows(of rule: RuleID, below directory: PathBytes, after last: PathBytes?) throws -> [(PathBytes, LedgerRow)] {
        var below = directory.bytes
        if below.last != .slash { below.append(.slash) }
        return try page.rows {
            // The successor of a path is the path with a zero byte appended, which no path contains.
            $0.bind(rule, PathBytes(last.map { $0.bytes + [0] } ?? below)).bind(blob: below.dropLast() + [.slash + 1])
        } _: { row in
            try errors.row { (try row.path(Self.pathColumn), try self.row(row)) }
        }
    }

    private func row(_ row: SQLStatement) throws -> LedgerRow {
        guard let trust = UInt8(exactly: row.integer(19)).flatMap(LedgerRow.Trust.init) else {
            throw UnreadableRow(table: "ledger")
        }
        return LedgerRow(row.isNull(0) ? nil : try snapshot(row), trust, isSuppressed: row.integer(20) != 0)
    }

    private func snapshot(_ row: SQLStatement) throws -> Snapshot {
        guard let type = FileType(rawValue: row.text(0)) else { throw UnreadableRow(table: "ledger") }
        let isOfThisRun = row.integer(15) == run
        var device = row.integer(8)
        if !isOfThisRun { device = devices[device] ?? device }
        let inode = UInt64(bitPattern: row.integer(9))
        let born = row.isNull(6) ? nil : row.timestamp(6)
        // No file has such an identity, and there is no birth time.
        let birth = device == 0 && inode == 0 ? 0 : born?.wholeNanoseconds ?? 0
        var snapshot = Snapshot(
            identity: FileIdentity(device: device, inode: inode, birth: birth), type: type,
            size: UInt64(bitPattern: row.integer(1)), modified: row.timestamp(2), changed: row.timestamp(4), born: born,
            mode: UInt16(truncatingIfNeeded: row.integer(10)), uid: UInt32(truncatingIfNeeded: row.integer(11)),
            gid: UInt32(truncatingIfNeeded: row.integer(12)), links: UInt32(truncatingIfNeeded: row.integer(13)),
            mount: isOfThisRun ? UInt64(bitPattern: row.integer(14)) : 0, digest: row.optionalBlob(16),
            delivered: row.optionalInteger(17).map { UInt64(bitPattern: $0) })
        if let text = row.optionalBlob(18) {
            guard let extended = [ExtendedAttribute](record: text) else { throw UnreadableRow(table: "ledger") }
            snapshot.extended = extended
        }
        return snapshot
    }

    // MARK: Writing

    /// Writes a row; deletes it if it is empty.
    func write(_ row: LedgerRow, of rule: RuleID, at path: PathBytes) throws {
        guard !row.isEmpty else { return try delete.run { $0.bind(rule, path) } }
        try upsert.run {
            $0.bind(rule, path)
            if let handled = row.handled { $0.bind(handled, run: run) } else { for _ in 0..<19 { $0.bindNull() } }
            $0.bind(Int64(row.trust.rawValue)).bind(row.isSuppressed)
        }
    }
}

extension SQLStatement {
    @discardableResult func bind(_ rule: RuleID, _ path: PathBytes) -> SQLStatement {
        bind(rule.number).bind(blob: path.bytes)
    }

    fileprivate func bind(_ snapshot: Snapshot, run: Int64) {
        bind(snapshot.type.rawValue).bind(Int64(bitPattern: snapshot.size))
            .bind(snapshot.modified).bind(snapshot.changed).bind(snapshot.born)
            .bind(snapshot.identity.device).bind(Int64(bitPattern: snapshot.identity.inode))
            .bind(Int64(snapshot.mode)).bind(Int64(snapshot.uid)).bind(Int64(snapshot.gid)).bind(Int64(snapshot.links))
            .bind(Int64(bitPattern: snapshot.mount)).bind(run).bind(blob: snapshot.digest)
            .bind(snapshot.delivered.map { Int64(bitPattern: $0) }).bind(utf8: snapshot.extended?.record)
    }

    func bind(_ time: Timestamp?) -> SQLStatement {
        bind(time?.seconds).bind(time.map { Int64($0.nanoseconds) })
    }

    func timestamp(_ column: Int32) -> Timestamp {
        Timestamp(seconds: integer(column), nanoseconds: UInt32(truncatingIfNeeded: integer(column + 1)))
    }

    func path(_ column: Int32, of table: String = "ledger") throws -> PathBytes {
        let path = PathBytes(blob(column))
        guard path.isAbsoluteName else { throw UnreadableRow(table: table) }
        return path
    }
}

import FileEvents
import GRDB
import JSON
import System

/// The tables of what each rule has received and is to receive: the ledger, indexed by path and by file; the read
/// positions of files that have left their paths and were not found under another one yet; the due paths that the
/// comparison at the start would not find; and the outputs of plugins.
struct LedgerTable {
    private let byPath: SQLStatement
    private let byInode: SQLStatement
    private let page: SQLStatement
    private let upsert: SQLStatement
    private let delete: SQLStatement
    private let positions: SQLStatement
    private let insertPosition: SQLStatement
    private let deletePosition: SQLStatement
    private let due: SQLStatement
    private let insertDue: SQLStatement
    private let deleteDue: SQLStatement
    private let maker: SQLStatement
    private let insertMaker: SQLStatement
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
        byPath = try SQLStatement("SELECT \(Self.columns) FROM ledger WHERE rule = ? AND path = ?", in: database)
        byInode = try SQLStatement(
            """
            SELECT \(Self.columns), path FROM ledger INDEXED BY ledger_by_identity WHERE inode = ? AND rule = ?
            """, in: database)
        page = try SQLStatement(
            """
            SELECT \(Self.columns), path FROM ledger WHERE rule = ? AND path >= ? AND path < ? ORDER BY path LIMIT 256
            """, in: database)
        upsert = try SQLStatement(upsertInto: "ledger", key: "rule, path", Self.columns, in: database)
        delete = try SQLStatement("DELETE FROM ledger WHERE rule = ? AND path = ?", in: database)
        positions = try SQLStatement(
            "SELECT inode, device, btime, ctime, ctime_ns, delivered FROM positions WHERE rule = ?", in: database)
        insertPosition = try SQLStatement("INSERT OR REPLACE INTO positions VALUES (?, ?, ?, ?, ?, ?, ?)", in: database)
        deletePosition = try SQLStatement(
            "DELETE FROM positions WHERE rule = ? AND inode = ? AND device = ? AND btime = ?", in: database)
        due = try SQLStatement("SELECT path, writer FROM due WHERE rule = ? ORDER BY path", in: database)
        insertDue = try SQLStatement("INSERT OR REPLACE INTO due VALUES (?, ?, ?)", in: database)
        deleteDue = try SQLStatement("DELETE FROM due WHERE rule = ? AND path = ?", in: database)
        maker = try SQLStatement("SELECT rule, source FROM makers WHERE output = ?", in: database)
        insertMaker = try SQLStatement("INSERT OR REPLACE INTO makers VALUES (?, ?, ?)", in: database)
    }

    // MARK: Reading

    func row(of rule: RuleID, at path: PathBytes) throws -> LedgerRow? {
        try byPath.first({ $0.bind(rule, path) }, self.row)
    }

    func paths(of rule: RuleID, handling identity: FileIdentity, limit: Int) throws -> [PathBytes] {
        try byInode.rows({ $0.bind(identity.inode).bind(rule.number) }, limit: limit) { row in
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
        guard let trust = UInt8(exactly: row.integer(19) as Int64).flatMap(LedgerRow.Trust.init) else {
            throw UnreadableRow(table: "ledger")
        }
        return LedgerRow(row.isNull(0) ? nil : try snapshot(row), trust, isSuppressed: row.flag(20))
    }

    private func snapshot(_ row: SQLStatement) throws -> Snapshot {
        guard let type = FileType(rawValue: row.text(0)) else { throw UnreadableRow(table: "ledger") }
        let isOfThisRun = row.integer(15) == run
        var device: Int64 = row.integer(8)
        if !isOfThisRun { device = devices[device] ?? device }
        let inode: UInt64 = row.integer(9)
        let born = row.isNull(6) ? nil : row.timestamp(6)
        // No file has such an identity, and there is no birth time.
        let birth = device == 0 && inode == 0 ? 0 : born?.wholeNanoseconds ?? 0
        var snapshot = Snapshot(
            identity: FileIdentity(device: device, inode: inode, birth: birth), type: type,
            size: row.integer(1), modified: row.timestamp(2), changed: row.timestamp(4), born: born,
            mode: row.integer(10), uid: row.integer(11), gid: row.integer(12), links: row.integer(13),
            mount: isOfThisRun ? row.integer(14) : 0, digest: row.optionalBlob(16), delivered: row.optionalInteger(17))
        if let text = row.optionalBlob(18) {
            guard let extended = [ExtendedAttribute](record: text) else { throw UnreadableRow(table: "ledger") }
            snapshot.extended = extended
        }
        return snapshot
    }

    /// Returns the read positions of a rule.
    func positions(of rule: RuleID) throws -> [FileIdentity: ReadPosition] {
        let rows = try positions.rows({ $0.bind(rule.number) }) { row in
            let position = ReadPosition(changed: row.timestamp(3), delivered: row.integer(5))
            let device = devices[row.integer(1)] ?? row.integer(1)
            return (FileIdentity(device: device, inode: row.integer(0), birth: row.integer(2)), position)
        }
        return Dictionary(rows) { max($0, $1) }
    }

    /// Returns the due paths of a rule, sorted.
    func duePaths(of rule: RuleID) throws -> [StoredDuePath] {
        try due.rows({ $0.bind(rule.number) }) { row in
            try errors.row { try row.path(0, of: "due") }.map { path in
                StoredDuePath(path: path, writer: row.optionalBlob(1).flatMap { Writer(record: $0) })
            }
        }
    }

    func maker(of output: PathBytes) throws -> (rule: Int64, source: PathBytes)? {
        try maker.first({ $0.bind(blob: output.bytes) }) {
            (rule: $0.integer(0), source: try $0.path(1, of: "makers"))
        }
    }

    // MARK: Writing

    /// Writes a row; deletes it if it is empty.
    func write(_ row: LedgerRow, of rule: RuleID, at path: PathBytes) throws {
        guard !row.isEmpty else { return try delete.run { $0.bind(rule, path) } }
        try upsert.run {
            $0.bind(rule, path)
            if let handled = row.handled { $0.bind(handled, run: run) } else { for _ in 0..<19 { $0.bindNull() } }
            $0.bind(row.trust.rawValue).bind(row.isSuppressed)
        }
    }

    func write(_ position: ReadPosition?, of file: FileIdentity, _ rule: RuleID) throws {
        guard let position else { return try deletePosition.run { $0.bind(rule, file) } }
        try insertPosition.run { $0.bind(rule, file).bind(position.changed).bind(position.delivered) }
    }

    func write(_ change: DueChange, of rule: RuleID, at path: PathBytes) throws {
        guard case .stored(let writer) = change else { return try deleteDue.run { $0.bind(rule, path) } }
        try insertDue.run { $0.bind(rule, path).bind(utf8: writer?.record) }
    }

    func write(_ output: PathBytes, rule: Int64, source: PathBytes) throws {
        try insertMaker.run { $0.bind(blob: output.bytes).bind(rule).bind(blob: source.bytes) }
    }
}

extension SQLStatement {
    @discardableResult func bind(_ rule: RuleID, _ path: PathBytes) -> SQLStatement {
        bind(rule.number).bind(blob: path.bytes)
    }

    @discardableResult fileprivate func bind(_ rule: RuleID, _ file: FileIdentity) -> SQLStatement {
        bind(rule.number).bind(file.inode).bind(file.device).bind(file.birth)
    }

    fileprivate func bind(_ snapshot: Snapshot, run: Int64) {
        bind(snapshot.type.rawValue).bind(snapshot.size)
            .bind(snapshot.modified).bind(snapshot.changed).bind(snapshot.born)
            .bind(snapshot.identity.device).bind(snapshot.identity.inode)
            .bind(snapshot.mode).bind(snapshot.uid).bind(snapshot.gid).bind(snapshot.links)
            .bind(snapshot.mount).bind(run).bind(blob: snapshot.digest)
            .bind(snapshot.delivered).bind(utf8: snapshot.extended?.record)
    }

    func bind(_ time: Timestamp?) -> SQLStatement {
        bind(time?.seconds).bind(time?.nanoseconds)
    }

    func timestamp(_ column: Int32) -> Timestamp {
        Timestamp(seconds: integer(column), nanoseconds: integer(column + 1))
    }

    func path(_ column: Int32, of table: String = "ledger") throws -> PathBytes {
        let path = PathBytes(blob(column))
        guard path.isAbsoluteName else { throw UnreadableRow(table: table) }
        return path
    }
}

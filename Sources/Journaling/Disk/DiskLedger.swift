import FileEvents
import GRDB
import PluginProtocol
import Reconciling
import Storage

/// What is known of files, in the journal's file, under what has changed since the last commit.
///
/// Nothing of it is held in memory but these changes. A path is found by the
/// table's key, a file by an index. What can't be read is told by ``fault``, and
/// then nothing that was told since is true.
///
/// The first look begins a read transaction, so that the next ones take no locks
/// of the file. ``endReading()`` ends it: before anything is written, and before
/// the journal rests, since the log can't be emptied while it goes on.
///
/// Whoever holds the journal's lock may use it.
final class DiskLedger: KnownFiles {
    /// The changes of one rule.
    struct Changes {
        var entries: [PathBytes: Snapshot?] = [:]
        /// The paths that files have had since the last commit, by identity without the birth time; those that they have
        /// still have to be sorted out.
        var paths: [FileIdentity: [PathBytes]] = [:]
        /// The paths of which the log ahead of the database does not tell as they are; one may be here twice.
        var news: [PathBytes] = []
    }

    private let beginReading: SQLStatement
    private let commitReading: SQLStatement
    private var isReading = false
    private let byPath: SQLStatement
    private let isThere: SQLStatement
    private let byInode: SQLStatement
    private let page: SQLStatement
    private let upsert: SQLStatement
    private let delete: SQLStatement
    /// The ids of the rules, by name.
    var rules: [String: Int64] = [:]
    private(set) var changes: [String: Changes] = [:]
    /// The number of this run; what an earlier one noted of mounts is void.
    private let run: Int64
    /// The numbers that devices have now, by those that they had in earlier runs.
    var devices: [Int64: Int64] = [:]
    /// No file that is known was born later: what was, is new, and need not be looked for.
    private(set) var youngest: Int64
    private var toldYoungest: Int64
    /// Why something could not be read.
    private(set) var fault: (any Error)?

    init(_ database: Database, run: Int64, youngest: Int64) throws {
        self.run = run
        self.youngest = youngest
        toldYoungest = youngest
        beginReading = try SQLStatement("BEGIN DEFERRED", in: database)
        commitReading = try SQLStatement("COMMIT", in: database)
        isThere = try SQLStatement("SELECT 1 FROM ledger WHERE rule = ? AND path = ?", in: database)
        byPath = try SQLStatement(
            "SELECT \(JournalStatement.entryColumns) FROM ledger WHERE rule = ? AND path = ?", in: database)
        byInode = try SQLStatement(
            "SELECT \(JournalStatement.entryColumns), path FROM ledger INDEXED BY ledger_by_identity WHERE inode = ? AND rule = ?",
            in: database)
        page = try SQLStatement(
            """
            SELECT \(JournalStatement.entryColumns), path FROM ledger WHERE rule = ? AND path >= ? AND path < ? ORDER BY path
            LIMIT \(Self.pageSize)
            """, in: database)
        upsert = try JournalStatement.upsertEntry.prepare(in: database)
        delete = try JournalStatement.deleteEntry.prepare(in: database)
    }

    // MARK: KnownFiles

    func known(_ rule: String, _ path: PathBytes) -> Snapshot? {
        if let change = changes[rule]?.entries[path] { return change }
        guard let id = rules[rule] else { return nil }
        return read {
            try byPath.first {
                $0.bind(id)
                $0.bind(blob: path.bytes)
            } _: {
                try snapshot($0)
            }
        } ?? nil
    }

    /// Whether anything is known of the path.
    func knows(_ rule: String, _ path: PathBytes) -> Bool {
        if let change = changes[rule]?.entries[path] { return change != nil }
        guard let id = rules[rule] else { return false }
        let isThere = read {
            try self.isThere.first {
                $0.bind(id)
                $0.bind(blob: path.bytes)
            } _: { _ in
                true
            }
        }
        return isThere == .some(true)
    }

    func set(_ entry: LedgerEntry) {
        guard rules[entry.view] != nil else { preconditionFailure("an entry of a rule that has not begun") }
        changes[entry.view, default: Changes()].entries[entry.path] = .some(entry.snapshot)
        changes[entry.view]?.news.append(entry.path)
        guard let identity = entry.snapshot?.identity else { return }
        youngest = max(youngest, identity.birth)
        changes[entry.view]?.paths[identity.withoutBirth, default: []].append(entry.path)
    }

    // MARK: Looking

    func paths(_ rule: String, of identity: FileIdentity) -> [PathBytes] {
        var found: Set<PathBytes> = []
        guard identity.birth <= youngest else { return [] }
        if let id = rules[rule] {
            read {
                try byInode.each {
                    $0.bind(Int64(bitPattern: identity.inode))
                    $0.bind(id)
                } _: { row in
                    let path = try Self.path(row)
                    guard changes[rule]?.entries[path] == nil else { return }
                    if identity.includes(try snapshot(row).identity) { found.insert(path) }
                }
            }
        }
        for path in changes[rule]?.paths[identity.withoutBirth] ?? [] {
            if case .some(.some(let snapshot)) = changes[rule]?.entries[path], identity.includes(snapshot.identity) {
                found.insert(path)
            }
        }
        return found.sorted()
    }

    /// How many rows are read at once: enough that finding the place costs nothing beside.
    static let pageSize = 256

    /// What is known in the folder behind a path, in the order of paths: a part of it, from the file alone.
    ///
    /// - Parameters:
    ///   - rule: The rule's name.
    ///   - folder: The folder.
    ///   - last: The last path of the part before; nil to begin.
    /// - Returns: The part; empty at the end.
    func part(_ rule: String, inside folder: PathBytes, after last: PathBytes?) -> [(path: PathBytes, Snapshot)] {
        guard let id = rules[rule] else { return [] }
        var below = folder.bytes
        if below.last != .slash { below.append(.slash) }
        var end = below
        end[end.count - 1] = .slash + 1
        // The first path behind another one is that one with a zero, which no path has.
        let start = last.map { $0.bytes + [0] } ?? below
        var rows: [(PathBytes, Snapshot)] = []
        read {
            try page.each {
                $0.bind(id)
                $0.bind(blob: start)
                $0.bind(blob: end)
            } _: { row in
                rows.append((try Self.path(row), try snapshot(row)))
            }
        }
        return rows
    }

    /// Whether the path has changed since the last commit.
    func isChanged(_ rule: String, _ path: PathBytes) -> Bool { changes[rule]?.entries[path] != nil }

    private func read<Result>(_ body: () throws -> Result) -> Result? {
        do {
            if !isReading { try beginReading.run() }
            isReading = true
            return try body()
        } catch {
            if fault == nil { fault = error }
            return nil
        }
    }

    /// Ends the read transaction, if one goes on.
    func endReading() {
        guard isReading else { return }
        isReading = false
        // After a fault SQLite may have ended it by itself.
        try? commitReading.run()
    }

    // MARK: Rows

    private static func path(_ row: SQLStatement) throws -> PathBytes {
        let path = PathBytes(row.blob(20))
        guard path.isAbsoluteName else { throw UnreadableRow(table: "ledger") }
        return path
    }

    private func snapshot(_ row: SQLStatement) throws -> Snapshot {
        guard let type = FileType(rawValue: row.text(0)) else { throw UnreadableRow(table: "ledger") }
        let isOfThisRun = row.integer(15) == run
        var device = row.integer(8)
        if !isOfThisRun { device = devices[device] ?? device }
        let inode = UInt64(bitPattern: row.integer(9))
        let born =
            row.isNull(6)
            ? nil : Timestamp(seconds: row.integer(6), nanoseconds: UInt32(truncatingIfNeeded: row.integer(7)))
        // No file has such an identity, nor a birth.
        let birth =
            device == 0 && inode == 0 ? 0 : born.map { $0.seconds &* 1_000_000_000 &+ Int64($0.nanoseconds) } ?? 0
        var snapshot = Snapshot(
            identity: FileIdentity(device: device, inode: inode, birth: birth), type: type,
            size: UInt64(bitPattern: row.integer(1)),
            modified: Timestamp(seconds: row.integer(2), nanoseconds: UInt32(truncatingIfNeeded: row.integer(3))),
            changed: Timestamp(seconds: row.integer(4), nanoseconds: UInt32(truncatingIfNeeded: row.integer(5))),
            born: born, mode: UInt16(truncatingIfNeeded: row.integer(10)),
            uid: UInt32(truncatingIfNeeded: row.integer(11)), gid: UInt32(truncatingIfNeeded: row.integer(12)),
            links: UInt32(truncatingIfNeeded: row.integer(13)),
            mount: isOfThisRun ? UInt64(bitPattern: row.integer(14)) : 0, digest: row.optionalBlob(16),
            delivered: row.optionalInteger(17).map { UInt64(bitPattern: $0) })
        if let text = row.utf8(18) {
            guard let extended = [ExtendedAttribute](record: text) else { throw UnreadableRow(table: "ledger") }
            snapshot.extended = extended
        }
        guard let standing = UInt8(exactly: row.integer(19)).flatMap(Snapshot.Standing.init) else {
            throw UnreadableRow(table: "ledger")
        }
        snapshot.standing = standing
        return snapshot
    }

    /// Writes what has changed since the last commit, within a transaction.
    func write() throws {
        for (name, changes) in changes {
            let rule = id(of: name)
            for (path, snapshot) in changes.entries {
                if let snapshot {
                    try upsert.run { bind(snapshot, path, rule, to: $0) }
                } else {
                    try delete.run { bind(path, rule, to: $0) }
                }
            }
        }
    }

    /// Whether ``youngest`` is another than was told last.
    var isYounger: Bool { youngest != toldYoungest }

    /// Whether the log ahead of the database tells of everything.
    var isTold: Bool { changes.values.allSatisfy(\.news.isEmpty) }

    /// Tells the log ahead of the database what has changed.
    func write(to record: AheadRecord) {
        for (name, changes) in changes {
            let rule = id(of: name)
            for path in changes.news {
                guard let entry = changes.entries[path] else { continue }
                if let snapshot = entry {
                    record.add(.upsertEntry) { bind(snapshot, path, rule, to: $0) }
                } else {
                    record.add(.deleteEntry) { bind(path, rule, to: $0) }
                }
            }
        }
    }

    /// Notes that the log ahead of the database tells of everything.
    func noteTold() {
        for name in changes.keys { changes[name]?.news.removeAll(keepingCapacity: true) }
        toldYoungest = youngest
    }

    /// Lets what is not committed yet go along with a rule's new name, unless the rule of that name was known by itself.
    func rename(_ rule: String, to name: String) {
        let changed = changes.removeValue(forKey: rule)
        if rules[name] == nil { changes[name] = changed }
    }

    private func id(of rule: String) -> Int64 {
        guard let id = rules[rule] else { preconditionFailure("an entry of a rule that has not begun") }
        return id
    }

    private func bind(_ path: PathBytes, _ rule: Int64, to row: some RowSink) {
        row.bind(rule)
        row.bind(blob: path.bytes)
    }

    private func bind(_ snapshot: Snapshot, _ path: PathBytes, _ rule: Int64, to row: some RowSink) {
        bind(path, rule, to: row)
        row.bind(snapshot.type.rawValue)
        row.bind(Int64(bitPattern: snapshot.size))
        row.bind(snapshot.modified.seconds)
        row.bind(Int64(snapshot.modified.nanoseconds))
        row.bind(snapshot.changed.seconds)
        row.bind(Int64(snapshot.changed.nanoseconds))
        row.bind(snapshot.born?.seconds)
        row.bind(snapshot.born.map { Int64($0.nanoseconds) })
        row.bind(snapshot.identity.device)
        row.bind(Int64(bitPattern: snapshot.identity.inode))
        row.bind(Int64(snapshot.mode))
        row.bind(Int64(snapshot.uid))
        row.bind(Int64(snapshot.gid))
        row.bind(Int64(snapshot.links))
        row.bind(Int64(bitPattern: snapshot.mount))
        row.bind(run)
        row.bind(blob: snapshot.digest)
        row.bind(snapshot.delivered.map { Int64(bitPattern: $0) })
        row.bind(utf8: snapshot.extended?.record)
        row.bind(Int64(snapshot.standing.rawValue))
    }

    /// Forgets what has been committed.
    func noteCommitted() {
        changes.removeAll(keepingCapacity: true)
        toldYoungest = youngest
    }
}

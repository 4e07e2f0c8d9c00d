import FileEvents
import System

/// The ledger rows of one view in memory; each takes only the bytes of its encoding.
///
/// A copy would share the tree of paths: do not copy it.
struct LedgerTree {
    private let tree = PathTree()
    private var rows = EncodedRows()
    /// The paths with a file, by its identity without the birth time.
    private var files = NumberTable()

    init() {}

    subscript(path: PathBytes) -> LedgerRow? { tree[path].map { rows[$0] } }

    /// Sets the row of a path; nil deletes it.
    mutating func set(_ path: PathBytes, _ row: LedgerRow?) {
        if let known = tree.number(of: path) {
            if let file = file(at: known) {
                files.remove(known, Self.hash(file)) { [tree, rows] in Self.hash($0, tree, rows) }
            }
            rows.remove(tree[known])
            if row == nil { tree.remove(known) }
        }
        if let row {
            let number = tree.insert(path, rows.append(row))
            if let file = row.handled?.identity {
                files.insert(number, Self.hash(file)) { [tree, rows] in Self.hash($0, tree, rows) }
            }
        }
        guard rows.isWasteful else { return }
        let all = tree.numbers
        for (number, start) in zip(all, rows.pack(all.map { tree[$0] })) { tree[number] = start }
    }

    /// Returns the paths of a file; without a birth time, those of all files with the device and inode.
    func paths(of identity: FileIdentity, limit: Int) -> [PathBytes] {
        var found: [PathBytes] = []
        _ = files.first(Self.hash(identity)) { number in
            if let file = file(at: number), identity.includes(file) { found.append(tree.path(of: number)) }
            return found.count >= limit
        }
        return found
    }

    /// Calls the closure for each row of a directory and everything below it, in no particular order.
    func visit(inside path: PathBytes, _ body: (PathBytes, LedgerRow) -> Void) {
        for number in tree.numbers(inside: path) { body(tree.path(of: number), rows[tree[number]]) }
    }

    private func file(at number: PathTree.Number) -> FileIdentity? { rows.identity(tree[number]) }

    private static func hash(_ number: PathTree.Number, _ tree: PathTree, _ rows: EncodedRows) -> Int {
        rows.identity(tree[number]).map(hash) ?? 0
    }

    private static func hash(_ identity: FileIdentity) -> Int { identity.withoutBirth.hashValue }
}

/// Encoded rows in one array: what files have in common is stored once, and small numbers take one byte.
private struct EncodedRows {
    /// The values that most files share with others.
    private struct Common: Hashable {
        var deviceMajor: UInt32
        var deviceMinor: UInt32
        var mount: UInt64
        var mode: UInt16
        var uid: UInt32
        var gid: UInt32
        var type: FileType
        var trust: LedgerRow.Trust
        var isSuppressed: Bool
        /// Whether the extended attributes were read, and there were none.
        var hasNoAttributes: Bool

        init(_ row: LedgerRow, _ file: Snapshot) {
            (deviceMajor, deviceMinor) = (file.identity.deviceMajor, file.identity.deviceMinor)
            (mount, mode, uid, gid, type) = (file.mount, file.mode, file.uid, file.gid, file.type)
            (trust, isSuppressed, hasNoAttributes) = (row.trust, row.isSuppressed, file.extended?.isEmpty ?? false)
        }
    }

    private var bytes: [UInt8] = []
    private var wasted = 0
    private var common: [Common] = []
    private var numbers: [Common: UInt64] = [:]
    /// The rows that the encoding cannot represent, by their positions.
    private var others: [UInt32: LedgerRow] = [:]

    var isWasteful: Bool { wasted > 65_536 && wasted > bytes.count / 2 }

    subscript(start: UInt32) -> LedgerRow {
        if !others.isEmpty, let other = others[start] { return other }
        return decode(start).row
    }

    /// Returns the file of a row.
    func identity(_ start: UInt32) -> FileIdentity? { self[start].handled?.identity }

    /// Stores a row and returns its position.
    mutating func append(_ row: LedgerRow) -> UInt32 {
        let start = UInt32(bytes.count)
        if let file = row.handled { encode(row, file) } else { bytes.append(0) }
        if decode(start).row != row { others[start] = row }
        return start
    }

    mutating func remove(_ start: UInt32) {
        if !others.isEmpty { others[start] = nil }
        wasted += decode(start).end - Int(start)
    }

    /// Removes what is not at one of the positions, and returns the new ones.
    mutating func pack(_ starts: [UInt32]) -> [UInt32] {
        let old = self
        self = EncodedRows()
        return starts.map { append(old[$0]) }
    }

    // MARK: Encoding

    private mutating func encode(_ row: LedgerRow, _ file: Snapshot) {
        let common = Common(row, file)
        let number = numbers[common] ?? UInt64(self.common.count + 1)
        if number > self.common.count {
            self.common.append(common)
            numbers[common] = number
        }
        add(number)
        add(file.identity.inode)
        // The times of a file are close together.
        let changed = file.changed.wholeNanoseconds
        add(changed)
        add(changed &- file.modified.wholeNanoseconds)
        add(changed &- file.identity.birth)
        add(file.size)
        add(UInt64(file.links))
    }

    private func decode(_ start: UInt32) -> (row: LedgerRow, end: Int) {
        var position = Int(start)
        let number = Int(next(&position) as UInt64)
        guard number > 0 else { return (LedgerRow(), position) }
        let common = common[number - 1]
        let inode: UInt64 = next(&position)
        let changed: Int64 = next(&position)
        let modified = changed &- next(&position)
        let birth = changed &- next(&position)
        let size = next(&position) as UInt64
        let snapshot = Snapshot(
            identity: FileIdentity(
                deviceMajor: common.deviceMajor, deviceMinor: common.deviceMinor, inode: inode, birth: birth),
            type: common.type, size: size, modified: Timestamp(wholeNanoseconds: modified),
            changed: Timestamp(wholeNanoseconds: changed),
            born: birth == 0 ? nil : Timestamp(wholeNanoseconds: birth), mode: common.mode, uid: common.uid,
            gid: common.gid, links: UInt32(truncatingIfNeeded: next(&position) as UInt64), mount: common.mount,
            extended: common.hasNoAttributes ? [] : nil)
        return (LedgerRow(snapshot, common.trust, isSuppressed: common.isSuppressed), position)
    }

    /// Appends a number with seven bits in each byte, the lowest first.
    private mutating func add(_ number: UInt64) {
        var rest = number
        while rest >= 128 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 128)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    /// Appends a number of which a small magnitude takes few bytes.
    private mutating func add(_ number: Int64) { add(UInt64(bitPattern: number << 1 ^ number >> 63)) }

    private func next(_ position: inout Int) -> UInt64 {
        var (number, shift): (UInt64, UInt64) = (0, 0)
        while true {
            let byte = bytes[position]
            position += 1
            number |= UInt64(byte & 127) << shift
            guard byte >= 128 else { return number }
            shift += 7
        }
    }

    private func next(_ position: inout Int) -> Int64 {
        let number: UInt64 = next(&position)
        return Int64(bitPattern: number >> 1) ^ -Int64(bitPattern: number & 1)
    }
}

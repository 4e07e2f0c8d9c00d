import FileEvents
import System

/// The ledger rows of one view in memory, as a tree of directories.
///
/// The rows below a directory are found without visiting others, and a path takes only the memory of its last name.
/// The directories are objects, so a copy shares them: do not copy the tree.
struct LedgerTree {
    private final class Directory {
        let name: PathBytes
        unowned let parent: Directory?
        /// Boxed, since a table reserves capacity for up to twice its count, and a row takes 160 bytes.
        var entries: [PathBytes: Box<LedgerRow>] = [:]
        var directories: [PathBytes: Directory] = [:]

        init(_ name: PathBytes, in parent: Directory?) {
            self.name = name
            self.parent = parent
        }

        var path: PathBytes { parent.map { $0.path.appending(name.bytes) } ?? "/" }
    }

    /// A path, as a directory and a name in it.
    private struct Position: Hashable {
        var directory: Directory
        var name: PathBytes

        var path: PathBytes { directory.path.appending(name.bytes) }

        static func == (left: Position, right: Position) -> Bool {
            left.directory === right.directory && left.name == right.name
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(ObjectIdentifier(directory))
            hasher.combine(name)
        }
    }

    /// The path of the last lookup; the next one nearly always shares most of it.
    private final class Walk {
        var path: [UInt8] = []
        /// The directories along the path, each with the end offset of its name in it.
        var directories: [(end: Int, directory: Directory)] = []

        /// Removes the directories that are not on the way to another path.
        func keepCommon(with other: UnsafeBufferPointer<UInt8>) {
            var common = 0
            while common < min(path.count, other.count), path[common] == other[common] { common += 1 }
            while let last = directories.last, last.end > common || last.end < other.count && other[last.end] != .slash
            {
                directories.removeLast()
            }
        }
    }

    private let root = Directory("", in: nil)
    private let walk = Walk()
    /// The first position of each file, by identity without the birth time.
    private var positions: [FileIdentity: Position] = [:]
    /// The further names of files with several names, and of files that successively had the same inode.
    private var links: [FileIdentity: Set<Position>] = [:]
    /// The number of rows.
    private(set) var count = 0

    init() {}

    subscript(path: PathBytes) -> LedgerRow? {
        guard let directory = directory(holding: path) else { return nil }
        return directory.entries[PathBytes(path.lastComponent)]?.value
    }

    /// Sets the row of a path; nil deletes it.
    mutating func set(_ path: PathBytes, _ row: LedgerRow?) {
        let name = PathBytes(path.lastComponent)
        guard let directory = directory(holding: path, makingIt: row != nil) else { return }
        let old: LedgerRow? =
            if let row {
                directory.entries.updateValue(Box(row), forKey: name)?.value
            } else {
                directory.entries.removeValue(forKey: name)?.value
            }
        count += (row == nil ? 0 : 1) - (old == nil ? 0 : 1)
        if old?.handled?.identity != row?.handled?.identity {
            let position = Position(directory: directory, name: name)
            if let file = old?.handled?.identity { remove(position, file) }
            if let file = row?.handled?.identity { add(position, file) }
        }
        if row == nil { prune(directory) }
    }

    /// Returns the paths of a file; without a birth time, those of all files with the device and inode.
    func paths(of identity: FileIdentity, limit: Int) -> [PathBytes] {
        let key = identity.withoutBirth
        guard let first = positions[key] else { return [] }
        let all = ([first] + (links[key] ?? [])).lazy.filter { position in
            position.directory.entries[position.name]?.value.handled.map { identity.includes($0.identity) } ?? false
        }
        return all.prefix(limit).map(\.path)
    }

    /// Calls the closure for each row of a directory and everything below it, in no particular order.
    ///
    /// The closure must not change the tree.
    func visit(inside path: PathBytes, _ body: (PathBytes, LedgerRow) -> Void) {
        // The row of `/` is in the directory itself, under an empty name.
        if path.bytes != [.slash], let row = self[path] { body(path, row) }
        guard let directory = directory(path.bytes[...]) else { return }
        var rest = [(path, directory)]
        while let (path, directory) = rest.popLast() {
            for (name, row) in directory.entries { body(path.appending(name.bytes), row.value) }
            for (name, directory) in directory.directories { rest.append((path.appending(name.bytes), directory)) }
        }
    }

    // MARK: Directories

    private func directory(holding path: PathBytes, makingIt: Bool = false) -> Directory? {
        directory(path.bytes[..<(path.bytes.lastIndex(of: .slash) ?? 0)], makingIt: makingIt)
    }

    private func directory(_ path: ArraySlice<UInt8>, makingIt: Bool = false) -> Directory? {
        path.withUnsafeBufferPointer { path in
            walk.keepCommon(with: path)
            var (end, directory) = walk.directories.last ?? (0, root)
            walk.path.replaceSubrange(end..., with: path[end...])
            while end < path.count {
                let start = path[end] == .slash ? end + 1 : end
                end = path[start...].firstIndex(of: .slash) ?? path.count
                if start == end { continue }
                let name = PathBytes(path[start..<end])
                if let next = directory.directories[name] {
                    directory = next
                } else {
                    guard makingIt else { return nil }
                    let next = Directory(name, in: directory)
                    directory.directories[name] = next
                    directory = next
                }
                walk.directories.append((end, directory))
            }
            return directory
        }
    }

    /// Removes directories without rows.
    private func prune(_ directory: Directory) {
        var directory = directory
        while directory.entries.isEmpty, directory.directories.isEmpty, let parent = directory.parent {
            parent.directories[directory.name] = nil
            walk.directories = []
            directory = parent
        }
    }

    // MARK: Identities

    private mutating func remove(_ position: Position, _ identity: FileIdentity) {
        let identity = identity.withoutBirth
        if positions[identity] == position {
            positions[identity] = links[identity]?.popFirst()
        } else {
            links[identity]?.remove(position)
        }
        if links[identity]?.isEmpty == true { links[identity] = nil }
    }

    private mutating func add(_ position: Position, _ identity: FileIdentity) {
        let identity = identity.withoutBirth
        guard let first = positions.updateValue(position, forKey: identity) else { return }
        // The file has a further name.
        positions[identity] = first
        links[identity, default: []].insert(position)
    }
}

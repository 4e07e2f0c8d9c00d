import System

/// The watched or polled directories, stored compactly.
///
/// A directory is a record with its parent and its name, not its path, so the cost
/// of removing one is proportional to the number of directories below it. Each root
/// is a separate tree, whose name is the whole path.
///
/// The kernel returns one descriptor per directory, so two paths to one directory
/// (a symbolic link as root, a bind mount) share it.
struct DirectoryTree: ~Copyable {
    /// A directory of the tree; it stays invalid after the directory was removed.
    struct ID: Hashable {
        fileprivate var index: Int32
        fileprivate var generation: UInt32

        /// An index that is unique among the directories that exist at the same time; it is reused.
        var number: Int { Int(index) }
    }

    struct Flags: OptionSet {
        let rawValue: UInt8

        /// It is polled, because the rule or the file system requires it.
        static let polled = Flags(rawValue: 1 << 0)
        /// It has no watch because the limit is reached.
        static let short = Flags(rawValue: 1 << 1)
        /// The failure to watch or list it has been reported.
        static let failed = Flags(rawValue: 1 << 2)
        /// The current listing of its parent has found it.
        static let seen = Flags(rawValue: 1 << 3)
        /// It is in the polling schedule.
        static let scheduled = Flags(rawValue: 1 << 4)
        /// It has been listed completely.
        static let listed = Flags(rawValue: 1 << 5)

        var isPolled: Bool { !isDisjoint(with: [.polled, .short]) }
    }

    /// A directory with its links to others, by their indices.
    struct Record {
        var parent: Int32
        var firstChild: Int32 = -1
        var next: Int32 = -1
        var previous: Int32 = -1
        var watch: WatchDescriptor = -1
        /// The next directory with the same watch.
        var sharing: Int32 = -1
        var nameStart: UInt32
        var generation: UInt32
        var nameLength: UInt16
        var device: UInt16 = 0
        var flags: Flags = []
        var isRoot: Bool
    }

    private var records: [Record] = []
    private var free: [Int32] = []
    private var names: [UInt8] = []
    /// The length of the names of directories that have been removed.
    private var forgottenNames = 0
    /// The directories by parent and name, without the roots.
    private var byName = NumberTable()
    /// The first directory with each watch.
    private var byWatch = NumberTable()

    /// The number of directories.
    private(set) var count = 0
    /// A counter that changes whenever a directory is added, changed or removed in a way that affects ``counts(in:)``.
    private var edition = 0
    /// The counts of trees, as of an edition.
    private var counted: (edition: Int, counts: [ID: Counts]) = (0, [:])
    /// The number of directories without a watch because the limit is reached.
    private(set) var shortCount = 0
    /// The number of directories that could not be watched or listed.
    private(set) var failedCount = 0
    /// The number of watches in use.
    var watchCount: Int { byWatch.count }

    // MARK: Queries

    func contains(_ directory: ID) -> Bool { records[Int(directory.index)].generation == directory.generation }

    func isRoot(_ directory: ID) -> Bool { records[Int(directory.index)].isRoot }

    func flags(of directory: ID) -> Flags { records[Int(directory.index)].flags }

    /// Whether it is polled for any reason.
    func isPolled(_ directory: ID) -> Bool { flags(of: directory).isPolled }

    func device(of directory: ID) -> UInt16 { records[Int(directory.index)].device }

    func watch(of directory: ID) -> WatchDescriptor? {
        let watch = records[Int(directory.index)].watch
        return watch < 0 ? nil : watch
    }

    func parent(of directory: ID) -> ID? {
        let parent = records[Int(directory.index)].parent
        return parent < 0 ? nil : id(parent)
    }

    /// Returns the root of the tree that contains the directory.
    func root(of directory: ID) -> ID {
        var index = directory.index
        while records[Int(index)].parent >= 0 { index = records[Int(index)].parent }
        return id(index)
    }

    /// Returns the directories with this watch, nearly always one.
    func directories(of watch: WatchDescriptor) -> [ID] {
        var found: [ID] = []
        var index = first(of: watch) ?? -1
        while index >= 0 {
            found.append(id(index))
            index = records[Int(index)].sharing
        }
        return found
    }

    /// Returns the only directory with this watch; nil when several have it, or none.
    func onlyDirectory(of watch: WatchDescriptor) -> ID? {
        guard let index = first(of: watch), records[Int(index)].sharing < 0 else { return nil }
        return id(index)
    }

    func path(of directory: ID) -> PathBytes {
        var length = 0
        var index = directory.index
        while index >= 0 {
            length += Int(records[Int(index)].nameLength) + 1
            index = records[Int(index)].parent
        }
        // One slash fewer than names; the name of the root directory `/` already ends in one.
        length -= 1
        let bytes = [UInt8](unsafeUninitializedCapacity: length) { buffer, filled in
            var end = length
            var index = directory.index
            while index >= 0 {
                let record = records[Int(index)]
                let start = Int(record.nameStart)
                let count = Int(record.nameLength)
                if index != directory.index, !(count == 1 && record.isRoot) {
                    end -= 1
                    buffer[end] = .slash
                }
                for offset in 0..<count { buffer[end - count + offset] = names[start + offset] }
                end -= count
                index = record.parent
            }
            // Below the root directory `/`, there is one byte too many at the front.
            if end > 0 { for offset in 0..<(length - end) { buffer[offset] = buffer[end + offset] } }
            filled = length - end
        }
        return PathBytes(bytes)
    }

    func child(of parent: ID, named name: UnsafeRawBufferPointer) -> ID? {
        if records[Int(parent.index)].firstChild < 0 { return nil }
        return index(of: name, in: parent.index).map { id($0) }
    }

    // MARK: Changes

    mutating func addRoot(_ path: PathBytes) -> ID { path.bytes.withUnsafeBytes { makeRecord(parent: -1, name: $0) } }

    /// Returns the subdirectory of that name, adding it if necessary, and marks it as seen.
    mutating func enter(_ parent: ID, named name: UnsafeRawBufferPointer) -> ID {
        if let found = index(of: name, in: parent.index) {
            records[Int(found)].flags.insert(.seen)
            return id(found)
        }
        let child = makeRecord(parent: parent.index, name: name)
        let first = records[Int(parent.index)].firstChild
        records[Int(child.index)].next = first
        if first >= 0 { records[Int(first)].previous = child.index }
        records[Int(parent.index)].firstChild = child.index
        byName.insert(child.index, Self.hash(parent.index, name)) { [records, names] in
            Self.hash(of: records[Int($0)], names)
        }
        return child
    }

    mutating func insert(_ flags: Flags, of directory: ID) {
        set(records[Int(directory.index)].flags.union(flags), of: directory.index)
    }

    mutating func remove(_ flags: Flags, of directory: ID) {
        set(records[Int(directory.index)].flags.subtracting(flags), of: directory.index)
    }

    private mutating func set(_ flags: Flags, of index: Int32) {
        edition &+= 1
        let changed = flags.symmetricDifference(records[Int(index)].flags)
        if changed.contains(.short) { shortCount += flags.contains(.short) ? 1 : -1 }
        if changed.contains(.failed) { failedCount += flags.contains(.failed) ? 1 : -1 }
        records[Int(index)].flags = flags
    }

    mutating func setDevice(_ device: UInt16, of directory: ID) { records[Int(directory.index)].device = device }

    /// Sets or removes the watch of a directory.
    ///
    /// - Returns: The previous watch if no directory uses it any more; the caller removes it.
    mutating func setWatch(_ watch: WatchDescriptor?, of directory: ID) -> WatchDescriptor? {
        let old = records[Int(directory.index)].watch
        if old == watch ?? -1 { return nil }
        let freed = old >= 0 && unlink(directory.index) ? old : nil
        if let watch {
            let first = first(of: watch)
            records[Int(directory.index)].watch = watch
            if let first {
                // Behind the first one, which stays in the table.
                records[Int(directory.index)].sharing = records[Int(first)].sharing
                records[Int(first)].sharing = directory.index
            } else {
                byWatch.insert(directory.index, Self.hash(watch)) { [records] in Self.hash(records[Int($0)].watch) }
            }
        }
        return freed
    }

    /// The removed directories and watches, for callers that store data by them.
    struct Forgotten {
        /// Watches that no directory uses any more.
        var watches: [WatchDescriptor] = []
        /// Directories that were polled.
        var polled: [ID] = []
    }

    /// Removes everything below a directory, and the directory too unless `keepingItself` is true.
    mutating func forget(_ directory: ID, keepingItself: Bool = false) -> Forgotten {
        var forgotten = Forgotten()
        var stack: [Int32] = []
        forEachChild(of: directory.index) { stack.append($0) }
        if keepingItself {
            records[Int(directory.index)].firstChild = -1
        } else {
            detach(directory.index)
            stack.append(directory.index)
        }
        while let index = stack.popLast() {
            if index != directory.index { forEachChild(of: index) { stack.append($0) } }
            let watch = records[Int(index)].watch
            if watch >= 0, unlink(index) { forgotten.watches.append(watch) }
            let record = records[Int(index)]
            if record.flags.isPolled { forgotten.polled.append(id(index)) }
            set([], of: index)
            if !record.isRoot {
                byName.remove(index, Self.hash(of: record, names)) { [records, names] in
                    Self.hash(of: records[Int($0)], names)
                }
            }
            forgottenNames += Int(record.nameLength)
            records[Int(index)].generation &+= 1
            records[Int(index)].nameLength = 0
            free.append(index)
            count -= 1
        }
        if forgottenNames > 4096, forgottenNames > names.count / 2 { packNames() }
        return forgotten
    }

    /// The numbers of directories in a tree.
    struct Counts {
        var directories = 0
        var polled = 0
        /// The number of polled directories that have no watch because the limit is reached.
        var short = 0
    }

    /// Counts the directory and those below it; takes no time if nothing has changed since the last call.
    mutating func counts(in directory: ID) -> Counts {
        if edition != counted.edition { counted = (edition, [:]) }
        if let known = counted.counts[directory] { return known }
        var counts = Counts()
        forEach(in: directory) { index in
            let flags = records[Int(index)].flags
            counts.directories += 1
            if flags.isPolled { counts.polled += 1 }
            if flags.contains(.short) { counts.short += 1 }
        }
        counted.counts[directory] = counts
        return counts
    }

    /// Returns the directories, from this one down, that could not be watched or listed.
    func failed(in directory: ID) -> [ID] {
        guard failedCount > 0 else { return [] }
        var found: [ID] = []
        forEach(in: directory) { if records[Int($0)].flags.contains(.failed) { found.append(id($0)) } }
        return found
    }

    /// Marks all subdirectories as not seen, at the start of a listing.
    mutating func markUnseen(below directory: ID) {
        var index = records[Int(directory.index)].firstChild
        while index >= 0 {
            records[Int(index)].flags.remove(.seen)
            index = records[Int(index)].next
        }
    }

    /// Returns the subdirectories that the listing did not find.
    func unseen(below directory: ID) -> [ID] {
        var found: [ID] = []
        forEachChild(of: directory.index) { if !records[Int($0)].flags.contains(.seen) { found.append(id($0)) } }
        return found
    }

    // MARK: Records

    private func forEachChild(of index: Int32, _ body: (Int32) -> Void) {
        var child = records[Int(index)].firstChild
        while child >= 0 {
            body(child)
            child = records[Int(child)].next
        }
    }

    /// Calls the closure for the directory and those below it.
    private func forEach(in directory: ID, _ body: (Int32) -> Void) {
        var stack = [directory.index]
        while let index = stack.popLast() {
            body(index)
            forEachChild(of: index) { stack.append($0) }
        }
    }

    private func id(_ index: Int32) -> ID { ID(index: index, generation: records[Int(index)].generation) }

    private mutating func makeRecord(parent: Int32, name: UnsafeRawBufferPointer) -> ID {
        edition &+= 1
        count += 1
        var record = Record(
            parent: parent, nameStart: UInt32(names.count), generation: 0, nameLength: UInt16(name.count),
            isRoot: parent < 0)
        names.append(contentsOf: name)
        record.flags = .seen
        if let index = free.popLast() {
            record.generation = records[Int(index)].generation
            records[Int(index)] = record
            return id(index)
        }
        records.append(record)
        return id(Int32(records.count - 1))
    }

    /// Removes a directory from its parent's list.
    private mutating func detach(_ index: Int32) {
        let record = records[Int(index)]
        if record.previous >= 0 {
            records[Int(record.previous)].next = record.next
        } else if record.parent >= 0 {
            records[Int(record.parent)].firstChild = record.next
        }
        if record.next >= 0 { records[Int(record.next)].previous = record.previous }
    }

    /// Removes a directory from the list of its watch; returns whether it was the last one.
    private mutating func unlink(_ index: Int32) -> Bool {
        let watch = records[Int(index)].watch
        let after = records[Int(index)].sharing
        guard watch >= 0, let first = first(of: watch) else { return false }
        defer {
            records[Int(index)].watch = -1
            records[Int(index)].sharing = -1
        }
        if first == index {
            byWatch.remove(index, Self.hash(watch)) { [records] in Self.hash(records[Int($0)].watch) }
            if after >= 0 {
                byWatch.insert(after, Self.hash(watch)) { [records] in Self.hash(records[Int($0)].watch) }
            }
            return after < 0
        }
        var current = first
        while records[Int(current)].sharing != index { current = records[Int(current)].sharing }
        records[Int(current)].sharing = after
        return false
    }

    // MARK: Names

    private func index(of name: UnsafeRawBufferPointer, in parent: Int32) -> Int32? {
        byName.first(Self.hash(parent, name)) { index in
            let record = records[Int(index)]
            return record.parent == parent
                && names.withName(at: record.nameStart, record.nameLength) { $0.compare(name) == 0 }
        }
    }

    /// Removes the names of forgotten directories.
    private mutating func packNames() {
        var packed: [UInt8] = []
        packed.reserveCapacity(names.count - forgottenNames)
        for index in records.indices where records[index].nameLength > 0 {
            let start = packed.count
            names.withName(at: records[index].nameStart, records[index].nameLength) { packed.append(contentsOf: $0) }
            records[index].nameStart = UInt32(start)
        }
        names = packed
        forgottenNames = 0
    }

    private static func hash(_ parent: Int32, _ name: UnsafeRawBufferPointer) -> Int {
        // Seeded, so that colliding names can't be chosen deliberately.
        var hasher = Hasher()
        hasher.combine(parent)
        hasher.combine(bytes: name)
        return hasher.finalize()
    }

    private static func hash(of record: Record, _ names: [UInt8]) -> Int {
        names.withName(at: record.nameStart, record.nameLength) { hash(record.parent, $0) }
    }

    // MARK: Watches

    private func first(of watch: WatchDescriptor) -> Int32? {
        byWatch.first(Self.hash(watch)) { records[Int($0)].watch == watch }
    }

    /// The kernel numbers watches in their order, so that the numbers themselves are well distributed.
    private static func hash(_ watch: WatchDescriptor) -> Int { Int(watch) }
}

extension [UInt8] {
    /// Calls the closure with one of the names that are stored in this array.
    func withName<Result>(
        at start: UInt32, _ length: UInt16, _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result {
        withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[Int(start)..<(Int(start) + Int(length))])) }
    }
}

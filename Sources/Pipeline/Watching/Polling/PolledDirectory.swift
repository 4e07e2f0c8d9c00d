import System

/// The contents of a directory at the last poll, stored compactly as names and fingerprints.
struct PolledDirectory {
    struct Entry {
        fileprivate var nameStart: UInt32
        fileprivate var nameLength: UInt16
        var isDirectory: Bool
        /// The identity of the file.
        fileprivate var identity: UInt32
        /// Size and modification time; unused for directories, which are polled themselves.
        fileprivate var content: UInt32
        /// Mode, owner, link count, and change time, which only the kernel sets.
        fileprivate var attributes: UInt32

        fileprivate func change(since before: Entry) -> Change? {
            if before.identity != identity { return .replaced(wasDirectory: before.isDirectory) }
            if before.content != content { return .written }
            return before.attributes != attributes ? .attributes : nil
        }
    }

    /// The change of an entry between two polls.
    enum Change: Equatable {
        case appeared, vanished
        /// Another file has the name now.
        case replaced(wasDirectory: Bool)
        case written, attributes
    }

    private(set) var entries: [Entry] = []
    private var names: [UInt8] = []

    init() {}

    /// Adds an entry with its metadata.
    mutating func add(_ name: UnsafeRawBufferPointer, _ file: Snapshot) {
        let isDirectory = file.type == .directory
        var identity = Hasher()
        identity.combine(file.identity)
        identity.combine(file.type)
        var content = Hasher()
        var attributes = Hasher()
        attributes.combine(file.mode)
        attributes.combine(file.uid)
        attributes.combine(file.gid)
        if !isDirectory {
            content.combine(file.size)
            content.combine(file.modified)
            attributes.combine(file.links)
            attributes.combine(file.changed)
        }
        entries.append(
            Entry(
                nameStart: UInt32(names.count), nameLength: UInt16(name.count), isDirectory: isDirectory,
                identity: UInt32(truncatingIfNeeded: identity.finalize()),
                content: UInt32(truncatingIfNeeded: content.finalize()),
                attributes: UInt32(truncatingIfNeeded: attributes.finalize())))
        names.append(contentsOf: name)
    }

    /// Copies an entry whose metadata can't be read now from the other listing; does nothing if it is not there.
    mutating func add(_ name: UnsafeRawBufferPointer, asIn other: PolledDirectory) {
        guard var entry = other.entry(named: name) else { return }
        entry.nameStart = UInt32(names.count)
        names.append(contentsOf: name)
        entries.append(entry)
    }

    /// Sorts the entries, for `changes`; call it after the last `add`.
    mutating func seal() {
        let directory = self
        entries.sort { directory.compare($0, $1, directory) < 0 }
        entries = Array(entries)
        names = Array(names)
    }

    /// Calls the closure for each difference to an earlier listing; both must be sealed.
    func changes(since earlier: PolledDirectory, _ body: (UnsafeRawBufferPointer, _ isDirectory: Bool, Change) -> Void)
    {
        var (old, new) = (0, 0)
        while old < earlier.entries.count || new < entries.count {
            let order =
                old == earlier.entries.count
                ? 1 : new == entries.count ? -1 : -compare(entries[new], earlier.entries[old], earlier)
            if order < 0 {
                let entry = earlier.entries[old]
                earlier.withName(entry) { body($0, entry.isDirectory, .vanished) }
                old += 1
                continue
            }
            let entry = entries[new]
            new += 1
            if order > 0 {
                withName(entry) { body($0, entry.isDirectory, .appeared) }
                continue
            }
            if let change = entry.change(since: earlier.entries[old]) {
                withName(entry) { body($0, entry.isDirectory, change) }
            }
            old += 1
        }
    }

    private func withName<Result>(_ entry: Entry, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        names.withName(at: entry.nameStart, entry.nameLength, body)
    }

    /// Returns a negative number when the entry's name sorts before that of the other directory's entry.
    private func compare(_ entry: Entry, _ other: Entry, _ directory: PolledDirectory) -> Int {
        withName(entry) { name in directory.withName(other) { name.compare($0) } }
    }

    private func entry(named name: UnsafeRawBufferPointer) -> Entry? {
        let index = (0..<entries.count).bisected { withName(entries[$0]) { $0.compare(name) } >= 0 }
        guard index < entries.count, withName(entries[index], { $0.compare(name) }) == 0 else { return nil }
        return entries[index]
    }
}

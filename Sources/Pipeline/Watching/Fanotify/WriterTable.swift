import FileEvents
import System

/// The changes that a process made to a name in a directory.
struct WriterChanges: OptionSet {
    let rawValue: UInt8

    /// The content is new or has changed: written and closed, created, linked, or renamed to this name.
    static let content = WriterChanges(rawValue: 1 << 0)
    /// The name is gone: deleted, or renamed to another name.
    static let removal = WriterChanges(rawValue: 1 << 1)
    /// Mode, owner, times or other attributes were set.
    static let attributes = WriterChanges(rawValue: 1 << 2)

    /// Creates the set of changes that cause an event of the kind; empty for kinds that no process causes.
    init(for kind: EventKind) {
        switch kind {
        case .created, .modified, .moved, .arriving: self = .content
        case .deleted: self = .removal
        case .attributes: self = .attributes
        case .opened, .accessed, .closed: self = []
        case .scanStarted, .scanEnded, .overflow, .unmounted, .rootGone, .rootBack: self = []
        }
    }

    init(rawValue: UInt8) { self.rawValue = rawValue }
}

/// The last change of one type, its process, and the time at which it was read.
struct WriterChange {
    /// The process; nil when the kernel reported none, for example for one outside this container.
    var process: WritingProcess?
    var time: Timestamp
    /// A sequence number that orders the changes, since many are read at the same time.
    var number: UInt64
}

/// The last changes of each name and the processes that made them, up to a limit; the oldest are evicted first.
///
/// Names are stored with the key of their directory, so that they stay valid when a
/// directory above them is renamed.
struct WriterTable {
    private struct Name: Hashable {
        var directory: DirectoryKey
        var bytes: [UInt8]
    }

    private struct Entry {
        var name: Name
        var content: WriterChange?
        var removal: WriterChange?
        var attributes: WriterChange?
    }

    private let limit: Int
    /// A ring, once it is full.
    ///
    /// A name that changes again moves to the newest position.
    private var entries: [Entry?] = []
    private var next = 0
    private var number: UInt64 = 0
    private var positions: [Name: Int] = [:]

    init(limit: Int = 65_536) { self.limit = limit }

    var count: Int { positions.count }

    /// Records a change by a process.
    ///
    /// - Parameters:
    ///   - changes: One or several changes, with no other process in between.
    ///   - name: The name in the directory.
    ///   - directory: The directory.
    ///   - process: The process; if it had exited, its attributes are copied from an earlier change that it made to the
    ///     name.
    ///   - time: The time at which the change was read, so not before it happened.
    mutating func record(
        _ changes: WriterChanges, to name: [UInt8], in directory: DirectoryKey, by process: WritingProcess?,
        at time: Timestamp
    ) {
        let name = Name(directory: directory, bytes: name)
        let position = positions[name]
        var entry = position.flatMap { entries[$0] } ?? Entry(name: name)
        var process = process
        if let pid = process?.pid, process?.name == nil {
            let earlier = [entry.content, entry.removal, entry.attributes].compactMap { $0?.process }
            process = earlier.first { $0.pid == pid && $0.name != nil } ?? process
        }
        number += 1
        let change = WriterChange(process: process, time: time, number: number)
        if changes.contains(.content) { entry.content = change }
        if changes.contains(.removal) { entry.removal = change }
        if changes.contains(.attributes) { entry.attributes = change }
        if let position { entries[position] = nil }
        put(entry)
    }

    private mutating func put(_ entry: Entry) {
        if entries.count < limit {
            positions[entry.name] = entries.count
            entries.append(entry)
            return
        }
        if let oldest = entries[next] { positions[oldest.name] = nil }
        entries[next] = entry
        positions[entry.name] = next
        next = (next + 1) % limit
    }

    /// Returns the last change of this type to the name.
    func change(_ changes: WriterChanges, to name: some Sequence<UInt8>, in directory: DirectoryKey) -> WriterChange? {
        let position = positions[Name(directory: directory, bytes: Array(name))]
        guard let entry = position.flatMap({ entries[$0] }) else { return nil }
        if changes.contains(.content) { return entry.content }
        return changes.contains(.removal) ? entry.removal : entry.attributes
    }

    /// Returns the last change to the content of the directories, or to the set of names in them.
    func lastDeed(in directories: Set<DirectoryKey>) -> WriterChange? {
        let inside = entries.lazy.compactMap(\.self).filter { directories.contains($0.name.directory) }
        return inside.flatMap { [$0.content, $0.removal].compactMap(\.self) }.max { $0.number < $1.number }
    }

    mutating func removeAll() { self = WriterTable(limit: limit) }
}

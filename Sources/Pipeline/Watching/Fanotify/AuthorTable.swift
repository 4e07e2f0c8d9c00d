import FileEvents
import System

/// What somebody did to a name in a folder.
struct Deeds: OptionSet {
    let rawValue: UInt8

    /// It has another content, or is new: written and closed, made, linked, or renamed to this name.
    static let content = Deeds(rawValue: 1 << 0)
    /// It is gone: deleted, or renamed to another name.
    static let removal = Deeds(rawValue: 1 << 1)
    /// Mode, owner, times or the like were set.
    static let attributes = Deeds(rawValue: 1 << 2)

    /// What has to be done to a path for an event of the kind; none for those that nobody does.
    init(for kind: EventKind) {
        switch kind {
        case .created, .modified, .moved, .arriving: self = .content
        case .deleted: self = .removal
        case .attributes: self = .attributes
        case .opened, .accessed, .closed: self = []
        case .scanBegan, .scanEnded, .overflow, .unmounted, .rootGone, .rootBack: self = []
        }
    }

    init(rawValue: UInt8) { self.rawValue = rawValue }
}

/// Who did something last, and when that was read.
struct Deed {
    /// Nil when the kernel named no process, as of one outside of this container.
    var process: WritingProcess?
    var time: Timestamp
    /// Counts what was done, since much of it is read at one time.
    var number: UInt64
}

/// Who did what to which name last, for so many names as there is room for; the oldest go first.
///
/// Names are kept by their folder's key, so that they are still right when a
/// folder above them has another name.
struct AuthorTable {
    private struct Name: Hashable {
        var folder: FolderKey
        var bytes: [UInt8]
    }

    private struct Entry {
        var name: Name
        var content: Deed?
        var removal: Deed?
        var attributes: Deed?
    }

    private let limit: Int
    /// A ring, once it is full.
    ///
    /// A name that something is done to anew gets the newest place.
    private var entries: [Entry?] = []
    private var next = 0
    private var number: UInt64 = 0
    private var places: [Name: Int] = [:]

    init(limit: Int = 65_536) { self.limit = limit }

    var count: Int { places.count }

    /// Notes what a process did.
    ///
    /// - Parameters:
    ///   - deeds: One thing or several, between which there was nobody else.
    ///   - name: The name in the folder.
    ///   - folder: The folder.
    ///   - process: Who; the facts of a process that had ended are those that it had when it did something to the name
    ///     before.
    ///   - time: When that was read, and so not before it happened.
    mutating func note(
        _ deeds: Deeds, to name: [UInt8], in folder: FolderKey, by process: WritingProcess?, at time: Timestamp
    ) {
        let name = Name(folder: folder, bytes: name)
        let place = places[name]
        var entry = place.flatMap { entries[$0] } ?? Entry(name: name)
        var process = process
        if let pid = process?.pid, process?.name == nil {
            let earlier = [entry.content, entry.removal, entry.attributes].compactMap { $0?.process }
            process = earlier.first { $0.pid == pid && $0.name != nil } ?? process
        }
        number += 1
        let deed = Deed(process: process, time: time, number: number)
        if deeds.contains(.content) { entry.content = deed }
        if deeds.contains(.removal) { entry.removal = deed }
        if deeds.contains(.attributes) { entry.attributes = deed }
        if let place { entries[place] = nil }
        put(entry)
    }

    private mutating func put(_ entry: Entry) {
        if entries.count < limit {
            places[entry.name] = entries.count
            entries.append(entry)
            return
        }
        if let oldest = entries[next] { places[oldest.name] = nil }
        entries[next] = entry
        places[entry.name] = next
        next = (next + 1) % limit
    }

    /// Who did one of the deeds to the name last.
    func deed(_ deeds: Deeds, to name: some Sequence<UInt8>, in folder: FolderKey) -> Deed? {
        guard let place = places[Name(folder: folder, bytes: Array(name))], let entry = entries[place] else {
            return nil
        }
        if deeds.contains(.content) { return entry.content }
        return deeds.contains(.removal) ? entry.removal : entry.attributes
    }

    /// Who did anything last to the content of the folders, or to which names are in them.
    func lastDeed(in folders: Set<FolderKey>) -> Deed? {
        var last: Deed?
        for case let entry? in entries where folders.contains(entry.name.folder) {
            for deed in [entry.content, entry.removal].compactMap(\.self)
            where last.map({ $0.number < deed.number }) ?? true {
                last = deed
            }
        }
        return last
    }

    mutating func removeAll() { self = AuthorTable(limit: limit) }
}

package import FileEvents

/// The snapshots of one view in memory, as a tree of folders.
///
/// What is below a folder is found without a look at all the rest, and a path
/// costs its last name alone. A value only by its look: the folders are objects,
/// so a copy shares them; hold it in one place.
package struct LedgerTree {
    private final class Folder {
        let name: PathBytes
        unowned let parent: Folder?
        var entries: [PathBytes: Snapshot] = [:]
        var folders: [PathBytes: Folder] = [:]

        init(_ name: PathBytes, in parent: Folder?) {
            self.name = name
            self.parent = parent
        }

        var path: PathBytes { parent.map { $0.path.appending(name.bytes) } ?? "/" }
    }

    /// A path, as its folder and its name in it.
    private struct Place: Equatable {
        var folder: Folder
        var name: PathBytes

        var path: PathBytes { folder.path.appending(name.bytes) }

        static func == (left: Place, right: Place) -> Bool { left.folder === right.folder && left.name == right.name }
    }

    /// The way that was walked last: the next path nearly always shares most of it.
    private final class Way {
        var path: [UInt8] = []
        /// The folders along the path, each with where its name ends there.
        var folders: [(end: Int, folder: Folder)] = []

        /// Keeps what leads to another path, too.
        func keepCommon(with other: UnsafeBufferPointer<UInt8>) {
            var common = 0
            while common < min(path.count, other.count), path[common] == other[common] { common += 1 }
            while let last = folders.last, last.end > common || last.end < other.count && other[last.end] != .slash {
                folders.removeLast()
            }
        }
    }

    private let root = Folder("", in: nil)
    private let way = Way()
    /// By identity without the birth time.
    private var places: [FileIdentity: Place] = [:]
    /// The further names of files that have several, and of files that had the inode one after the other.
    private var links: [FileIdentity: [Place]] = [:]
    /// How many paths are known.
    package private(set) var count = 0

    package init() {}

    package subscript(path: PathBytes) -> Snapshot? {
        guard let folder = folder(holding: path) else { return nil }
        return folder.entries[PathBytes(path.lastComponent)]
    }

    /// Sets what is known of a path; nil forgets it.
    package mutating func set(_ path: PathBytes, _ snapshot: Snapshot?) {
        let name = PathBytes(path.lastComponent)
        guard let folder = folder(holding: path, makingIt: snapshot != nil) else { return }
        let old: Snapshot? =
            if let snapshot {
                folder.entries.updateValue(snapshot, forKey: name)
            } else {
                folder.entries.removeValue(forKey: name)
            }
        count += (snapshot == nil ? 0 : 1) - (old == nil ? 0 : 1)
        if old?.identity != snapshot?.identity {
            let place = Place(folder: folder, name: name)
            if let old { forget(place, old.identity) }
            if let snapshot { note(place, snapshot.identity) }
        }
        if snapshot == nil { prune(folder) }
    }

    /// The paths of a file; without a birth time, of all files with the device and inode.
    package func paths(of identity: FileIdentity) -> [PathBytes] {
        let key = identity.withoutBirth
        guard let first = places[key] else { return [] }
        return ([first] + (links[key] ?? [])).filter { place in
            place.folder.entries[place.name].map { identity.includes($0.identity) } ?? false
        }.map(\.path)
    }

    /// Calls the closure for all that is known in the folder, at any depth, and for the folder itself.
    ///
    /// The order is that of nothing. The closure must not change the tree.
    package func visit(inside path: PathBytes, _ body: (PathBytes, Snapshot) -> Void) {
        // What is known of `/` lies in the folder itself, under a name without a letter.
        if path.bytes != [.slash], let snapshot = self[path] { body(path, snapshot) }
        guard let folder = folder(path.bytes[...]) else { return }
        var rest = [(path, folder)]
        while let (path, folder) = rest.popLast() {
            for (name, snapshot) in folder.entries { body(path.appending(name.bytes), snapshot) }
            for (name, folder) in folder.folders { rest.append((path.appending(name.bytes), folder)) }
        }
    }

    // MARK: Folders

    private func folder(holding path: PathBytes, makingIt: Bool = false) -> Folder? {
        folder(path.bytes[..<(path.bytes.lastIndex(of: .slash) ?? 0)], makingIt: makingIt)
    }

    private func folder(_ path: ArraySlice<UInt8>, makingIt: Bool = false) -> Folder? {
        path.withUnsafeBufferPointer { path in
            way.keepCommon(with: path)
            var (end, folder) = way.folders.last ?? (0, root)
            way.path.replaceSubrange(end..., with: path[end...])
            while end < path.count {
                let start = path[end] == .slash ? end + 1 : end
                end = path[start...].firstIndex(of: .slash) ?? path.count
                if start == end { continue }
                let name = PathBytes(path[start..<end])
                if let next = folder.folders[name] {
                    folder = next
                } else {
                    guard makingIt else { return nil }
                    let next = Folder(name, in: folder)
                    folder.folders[name] = next
                    folder = next
                }
                way.folders.append((end, folder))
            }
            return folder
        }
    }

    /// Drops folders that hold nothing any more.
    private func prune(_ folder: Folder) {
        var folder = folder
        while folder.entries.isEmpty, folder.folders.isEmpty, let parent = folder.parent {
            parent.folders[folder.name] = nil
            way.folders = []
            folder = parent
        }
    }

    // MARK: Identities

    private mutating func forget(_ place: Place, _ identity: FileIdentity) {
        let identity = identity.withoutBirth
        var names = ([places[identity]].compactMap(\.self) + (links[identity] ?? [])).filter { $0 != place }
        places[identity] = names.isEmpty ? nil : names.removeFirst()
        links[identity] = names.isEmpty ? nil : names
    }

    private mutating func note(_ place: Place, _ identity: FileIdentity) {
        let identity = identity.withoutBirth
        guard let first = places.updateValue(place, forKey: identity) else { return }
        // A further name of the file.
        places[identity] = first
        links[identity, default: []].append(place)
    }
}

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

    private let root = Folder("", in: nil)
    private var places: [FileIdentity: Place] = [:]
    /// The further names of files that have several.
    private var links: [FileIdentity: [Place]] = [:]
    /// How many paths are known.
    package private(set) var count = 0

    package init() {}

    package subscript(path: PathBytes) -> Snapshot? {
        guard let folder = folder(path.parent) else { return nil }
        return folder.entries[PathBytes(path.lastComponent)]
    }

    /// Sets what is known of a path; nil forgets it.
    package mutating func set(_ path: PathBytes, _ snapshot: Snapshot?) {
        let name = PathBytes(path.lastComponent)
        guard let folder = snapshot == nil ? folder(path.parent) : makeFolder(path.parent) else { return }
        let old = folder.entries[name]
        folder.entries[name] = snapshot
        count += (snapshot == nil ? 0 : 1) - (old == nil ? 0 : 1)
        if old?.identity != snapshot?.identity {
            let place = Place(folder: folder, name: name)
            if let old { forget(place, old.identity) }
            if let snapshot { note(place, snapshot.identity) }
        }
        if snapshot == nil { prune(folder) }
    }

    /// The paths of a file.
    package func paths(of identity: FileIdentity) -> [PathBytes] {
        guard let place = places[identity] else { return [] }
        return [place.path] + (links[identity] ?? []).map(\.path)
    }

    /// What is known directly in the folder, and the folders in it that hold something.
    package func list(_ path: PathBytes) -> (entries: [(path: PathBytes, snapshot: Snapshot)], folders: [PathBytes]) {
        guard let folder = folder(path) else { return ([], []) }
        return (
            folder.entries.map { (path.appending($0.key.bytes), $0.value) },
            folder.folders.keys.map { path.appending($0.bytes) }
        )
    }

    // MARK: Folders

    private func folder(_ path: PathBytes) -> Folder? {
        var folder = root
        for name in path.bytes.split(separator: .slash) {
            guard let next = folder.folders[PathBytes(name)] else { return nil }
            folder = next
        }
        return folder
    }

    private func makeFolder(_ path: PathBytes) -> Folder {
        var folder = root
        for name in path.bytes.split(separator: .slash).map({ PathBytes($0) }) {
            if let next = folder.folders[name] {
                folder = next
            } else {
                let next = Folder(name, in: folder)
                folder.folders[name] = next
                folder = next
            }
        }
        return folder
    }

    /// Drops folders that hold nothing any more.
    private func prune(_ folder: Folder) {
        var folder = folder
        while folder.entries.isEmpty, folder.folders.isEmpty, let parent = folder.parent {
            parent.folders[folder.name] = nil
            folder = parent
        }
    }

    // MARK: Identities

    private mutating func forget(_ place: Place, _ identity: FileIdentity) {
        var names = ([places[identity]].compactMap(\.self) + (links[identity] ?? [])).filter { $0 != place }
        places[identity] = names.isEmpty ? nil : names.removeFirst()
        links[identity] = names.isEmpty ? nil : names
    }

    private mutating func note(_ place: Place, _ identity: FileIdentity) {
        if places[identity] == nil {
            places[identity] = place
        } else {
            links[identity, default: []].append(place)
        }
    }
}

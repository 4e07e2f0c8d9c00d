import FileEvents
import Settling
import System

/// The files at the paths of the views, as far as the views may report them.
struct VisibleFiles {
    let fileSystem: any FileSystem
    /// The directories of the paths; they stay open until ``WatchedPaths/forget()``.
    private(set) var paths: WatchedPaths
    /// The directories that are polled.
    var polled: Set<PathBytes> = []
    /// Mount points whose file system is not mounted.
    var unmounted: Set<PathBytes> = []
    /// Paths that the kernel resolves to a file whose name differs in case.
    var otherSpellings: Set<PathBytes> = []
    /// The files that were inspected in this turn and whose changes are hinted: no hint has come since.
    private var seen: [PathBytes: Box<Snapshot>] = [:]

    init(roots: [PathBytes], in fileSystem: any FileSystem) {
        self.fileSystem = fileSystem
        paths = WatchedPaths(roots: roots, in: fileSystem)
    }

    mutating func setRoots(_ roots: [PathBytes]) { paths = WatchedPaths(roots: roots, in: fileSystem) }

    // MARK: Snapshots

    /// Returns the state of a path for a view: absent behind a symbolic link, or if the file has another type.
    ///
    /// The path is not inspected if a snapshot is passed, unless the view compares extended attributes.
    func stat(_ path: PathBytes, for view: View, as seen: Snapshot? = nil) -> DiskProbe.StatResult {
        guard let root = view.root(of: path), !otherSpellings.contains(path) else { return .absent }
        let isAnyNew = view.readsExtended || view.isPolled
        let recent = isAnyNew || seen != nil ? nil : self.seen[path]?.value
        guard recent != nil || !paths.isBehindLink(path, root: root) else { return .absent }
        let known = recent ?? (view.readsExtended ? nil : seen)
        let result = known.map { .present($0) } ?? paths.inspect(at: path, readingExtended: view.readsExtended)
        guard case .present(let snapshot) = result, !view.types.contains(snapshot.type) else { return result }
        return .absent
    }

    /// Whether each change of a file that is at a path causes a hint of the path: the directory is watched, and the
    /// file has no other name by which it could change.
    func isHinted(_ snapshot: Snapshot, at path: PathBytes) -> Bool {
        snapshot.type == .file && !snapshot.hasSeveralNames && !isPolled(path)
    }

    /// Records the metadata of a file; the path must not have been hinted since they were read.
    mutating func record(_ snapshot: Snapshot, at path: PathBytes) {
        if isHinted(snapshot, at: path) { seen[path] = Box(snapshot) }
    }

    /// Forgets a file that is hinted, or all files.
    mutating func forget(_ path: PathBytes? = nil) {
        if let path { seen[path] = nil } else if !seen.isEmpty { seen = [:] }
    }

    /// Returns the fingerprint of the content of a directory; nil if it has not settled.
    func fingerprint(of directory: PathBytes) -> [UInt8]? {
        guard let location = try? paths.location(of: directory),
            case .quiet(let tree) = fileSystem.tree(at: location, askingWriters: false)
        else { return nil }
        return tree.fingerprint
    }

    /// Returns the number of entries of a directory; nil if it cannot be listed.
    func children(of directory: PathBytes) -> Int? {
        (try? paths.location(of: directory)).flatMap { fileSystem.children(of: $0) }
    }

    // MARK: Identities

    /// Returns the identity under which the ledger may contain the file at a path.
    ///
    /// On overlayfs, a file that was born after its content was last written may be the copy of one with an earlier
    /// birth time.
    func recordedIdentity(of snapshot: Snapshot, at path: PathBytes) -> FileIdentity {
        guard let born = snapshot.born, snapshot.modified < born else { return snapshot.identity }
        return paths.isOnOverlay(path) ? snapshot.identity.withoutBirth : snapshot.identity
    }

    /// Returns the row's metadata, with the current file's identity if that is its copy in the upper layer of
    /// overlayfs.
    func known(_ before: Snapshot, as snapshot: Snapshot, at path: PathBytes, _ signs: Hint.Signs) -> Snapshot {
        guard snapshot.mayBeCopy(of: before) else { return before }
        let isSameName = signs.isDisjoint(with: [.appeared, .vanished, .listed, .polled])
        guard isSameName || snapshot.isUnwrittenCopy(of: before), paths.isOnOverlay(path) else { return before }
        var known = before
        known.identity = snapshot.identity
        return known
    }

    // MARK: Roots, mounts, polling

    /// Whether an absent path is removed and not just hidden by a missing root or another file system.
    func isRemoved(_ path: PathBytes, below root: PathBytes, _ before: Snapshot?) -> Bool {
        guard case .present(let there) = fileSystem.stat(root) else { return false }
        guard let before else { return true }
        var directory = path.parent
        var present = there
        while directory != root, directory.isInside(root) {
            if let snapshot = paths.inspect(at: directory).snapshot {
                present = snapshot
                break
            }
            directory = directory.parent
        }
        let isSameDevice =
            present.identity.deviceMajor == before.identity.deviceMajor
            && present.identity.deviceMinor == before.identity.deviceMinor
        if directory == path.parent, unmounted.contains(path), !unmounted.contains(where: directory.isInside) {
            return true
        }
        let isHidden = unmounted.contains(where: path.isInside)
        guard before.mount != 0, present.mount != 0 else { return isSameDevice || !isHidden }
        return before.mount == present.mount
            || isSameDevice && !isHidden && !fileSystem.isMounted(before.mount)
    }

    func isPolled(_ path: PathBytes) -> Bool { !polled.isEmpty && path.andParents.contains { polled.contains($0) } }

    /// Records that a file system was unmounted, whose directories are no longer polled.
    mutating func unmount(_ directory: PathBytes) {
        unmounted.insert(directory)
        polled = polled.filter { !$0.isInside(directory) }
    }
}

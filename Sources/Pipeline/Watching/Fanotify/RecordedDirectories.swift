import Glibc
import System

/// The directories of marked file systems that are inside a root.
///
/// A marked file system reports all events on it. Each of its directories is
/// therefore checked once, by its path through the mount of the roots, and the
/// result is cached until any directory is renamed.
struct RecordedDirectories {
    /// The roots that are accessed through one mount.
    private struct Anchor {
        var mount: UInt64
        var fileSystem: UInt64
        /// The path of each root without symbolic links, and the path by which it was opened.
        var roots: [PathBytes: PathBytes] = [:]
    }

    private var anchors: [Anchor] = []
    private var verdicts: [DirectoryKey: Bool] = [:]
    /// File systems on which only directories are marked.
    private var markedByDirectory: Set<UInt64> = []

    private static let limit = 65_536

    /// Adds an open directory as a root: everything below it matters.
    ///
    /// - Returns: False when the location of directories on its file system can't be determined.
    mutating func add(_ directory: OpenFile, at path: PathBytes) -> Bool {
        guard let mount = try? directory.snapshot().mount, let key = DirectoryKey(of: directory),
            let location = Self.location(of: directory), key.open(through: directory) != nil
        else { return false }
        verdicts = [:]
        let known = anchors.firstIndex { $0.mount == mount && $0.fileSystem == key.fileSystem }
        let index = known ?? anchors.count
        if known == nil { anchors.append(Anchor(mount: mount, fileSystem: key.fileSystem)) }
        guard !anchors[index].roots.keys.contains(where: { location.isInside($0) }) else { return true }
        // The previous location of a root that was moved is removed.
        anchors[index].roots = anchors[index].roots.filter { $0.value != path }
        anchors[index].roots[location] = path
        return true
    }

    /// Adds the file system of a marked directory as one with marked directories only; false when its directories have
    /// no keys.
    mutating func addMarked(_ directory: OpenFile) -> Bool {
        guard let key = DirectoryKey(of: directory) else { return false }
        markedByDirectory.insert(key.fileSystem)
        verdicts = [:]
        return true
    }

    /// Clears the cached results after a directory was renamed.
    mutating func forgetResults() { verdicts = [:] }

    mutating func contains(_ directory: DirectoryKey) -> Bool {
        if let known = verdicts[directory] { return known }
        let isInside = markedByDirectory.contains(directory.fileSystem) || isInside(directory)
        if verdicts.count >= Self.limit { verdicts = [:] }
        verdicts[directory] = isInside
        return isInside
    }

    private func isInside(_ directory: DirectoryKey) -> Bool {
        anchors.contains { anchor in
            // No descriptor stays open, since that would keep the file system from being unmounted.
            guard anchor.fileSystem == directory.fileSystem, let mount = Self.open(anchor.roots.values),
                let opened = directory.open(through: mount), let location = Self.location(of: opened)
            else { return false }
            return anchor.roots.keys.contains { location.isInside($0) }
        }
    }

    /// Opens the first of the directories that exists.
    private static func open(_ paths: some Sequence<PathBytes>) -> OpenFile? {
        let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK
        return paths.lazy.map { $0.withCString { Glibc.open($0, flags) } }.first { $0 >= 0 }.map { OpenFile($0) }
    }

    /// Returns the current path of an open directory, without symbolic links.
    private static func location(of directory: OpenFile) -> PathBytes? {
        KernelFileSystem().target(of: PathBytes("/proc/self/fd/\(directory.descriptor)"))
    }
}

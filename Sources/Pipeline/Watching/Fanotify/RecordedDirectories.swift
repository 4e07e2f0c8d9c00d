import CAlightLinux
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
    mutating func add(_ directory: Int32, at path: PathBytes) -> Bool {
        var status = cal_stat()
        guard cal_stat_descriptor(directory, &status) == 0,
            let key = DirectoryKey(of: directory), let location = Self.location(of: directory)
        else { return false }
        let opened = key.open(through: directory)
        guard opened >= 0 else { return false }
        close(opened)
        verdicts = [:]
        let known = anchors.firstIndex { $0.mount == status.mount && $0.fileSystem == key.fileSystem }
        let index = known ?? anchors.count
        if known == nil { anchors.append(Anchor(mount: status.mount, fileSystem: key.fileSystem)) }
        guard !anchors[index].roots.keys.contains(where: { location.isInside($0) }) else { return true }
        // The previous location of a root that was moved is removed.
        anchors[index].roots = anchors[index].roots.filter { $0.value != path }
        anchors[index].roots[location] = path
        return true
    }

    /// Adds the file system of a marked directory as one with marked directories only; false when its directories have
    /// no keys.
    mutating func addMarked(_ directory: Int32) -> Bool {
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
        for anchor in anchors where anchor.fileSystem == directory.fileSystem {
            // No descriptor stays open, since that would keep the file system from being unmounted.
            guard let mount = Self.open(anchor.roots.values) else { continue }
            defer { close(mount) }
            let opened = directory.open(through: mount)
            guard opened >= 0 else { continue }
            defer { close(opened) }
            guard let location = Self.location(of: opened) else { continue }
            if anchor.roots.keys.contains(where: { location.isInside($0) }) { return true }
        }
        return false
    }

    /// Opens the first of the directories that exists.
    private static func open(_ paths: some Sequence<PathBytes>) -> Int32? {
        for path in paths {
            let directory = path.withCString { Glibc.open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK) }
            if directory >= 0 { return directory }
        }
        return nil
    }

    /// Returns the current path of an open directory, without symbolic links.
    private static func location(of descriptor: Int32) -> PathBytes? {
        KernelFileSystem().target(of: PathBytes("/proc/self/fd/\(descriptor)"))
    }
}

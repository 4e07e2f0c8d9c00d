import CAlightLinux
import FileEvents
import Glibc
import System

/// Which folders of the file systems that are listened to lie in a root.
///
/// A whole file system tells of all that happens on it. So each of its folders is
/// judged once, by where it is seen through the mount of the roots, and then known
/// until any folder gets another name.
struct RecordedFolders {
    /// Roots that are seen through one mount.
    private struct Anchor {
        var mount: UInt64
        var fileSystem: UInt64
        /// Where the roots are without links, and by which path each was opened.
        var roots: [PathBytes: PathBytes] = [:]
    }

    private var anchors: [Anchor] = []
    private var verdicts: [FolderKey: Bool] = [:]
    /// File systems of which only marked folders tell.
    private var markedByFolder: Set<UInt64> = []

    private static let limit = 65_536

    /// Adds an open folder as one below which everything matters.
    ///
    /// - Returns: False when it can't be told where folders of its file system are.
    mutating func add(_ folder: Int32, at path: PathBytes) -> Bool {
        var status = cal_stat()
        guard cal_stat_descriptor(folder, &status) == 0,
            let key = FolderKey(of: folder), let place = Self.place(of: folder)
        else { return false }
        let opened = key.open(through: folder)
        guard opened >= 0 else { return false }
        close(opened)
        verdicts = [:]
        let known = anchors.firstIndex { $0.mount == status.mount && $0.fileSystem == key.fileSystem }
        let index = known ?? anchors.count
        if known == nil { anchors.append(Anchor(mount: status.mount, fileSystem: key.fileSystem)) }
        guard !anchors[index].roots.keys.contains(where: { place.isInside($0) }) else { return true }
        // Of a root that was moved the former place is forgotten.
        anchors[index].roots = anchors[index].roots.filter { $0.value != path }
        anchors[index].roots[place] = path
        return true
    }

    /// Notes that of a file system only marked folders tell, such as this one; false when its folders have no keys.
    mutating func addMarked(_ folder: Int32) -> Bool {
        guard let key = FolderKey(of: folder) else { return false }
        markedByFolder.insert(key.fileSystem)
        verdicts = [:]
        return true
    }

    /// Forgets where folders are, since one has another name.
    mutating func noteMove() { verdicts = [:] }

    mutating func contains(_ folder: FolderKey) -> Bool {
        if let known = verdicts[folder] { return known }
        let isInside = markedByFolder.contains(folder.fileSystem) || look(for: folder)
        if verdicts.count >= Self.limit { verdicts = [:] }
        verdicts[folder] = isInside
        return isInside
    }

    private func look(for folder: FolderKey) -> Bool {
        for anchor in anchors where anchor.fileSystem == folder.fileSystem {
            // Nothing is kept open, since that would keep a file system from being unmounted.
            guard let mount = Self.open(anchor.roots.values) else { continue }
            defer { close(mount) }
            let opened = folder.open(through: mount)
            guard opened >= 0 else { continue }
            defer { close(opened) }
            guard let place = Self.place(of: opened) else { continue }
            if anchor.roots.keys.contains(where: { place.isInside($0) }) { return true }
        }
        return false
    }

    /// The first of the folders that is there.
    private static func open(_ paths: some Sequence<PathBytes>) -> Int32? {
        for path in paths {
            let folder = path.withCString { Glibc.open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK) }
            if folder >= 0 { return folder }
        }
        return nil
    }

    /// Where an open folder is now, without links.
    private static func place(of descriptor: Int32) -> PathBytes? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { buffer in
            guard let base = buffer.baseAddress else { return nil }
            let count = readlink("/proc/self/fd/\(descriptor)", base, buffer.count)
            guard count > 0, count < buffer.count else { return nil }
            return PathBytes(UnsafeRawBufferPointer(start: base, count: count))
        }
    }
}

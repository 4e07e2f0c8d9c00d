import CAlightLinux
import Glibc

/// Resolves watched paths: the one place where they are opened.
///
/// The directory of a path is opened beneath the innermost root that holds it, and no link on the way is followed. So a
/// process that swaps directories for links leads no look out of the root. The root itself is opened by its path, as
/// `cal_open_root` does.
///
/// The directory that was opened last stays open until ``forget()``, since most paths that are looked at in a row are in
/// the same one. An open directory keeps its file system from being unmounted, so that has to be soon. Used by one thread.
package final class WatchedPaths {
    package let fileSystem: any FileSystem
    private let roots: Set<PathBytes>
    private var root: (path: PathBytes, directory: OpenDirectory)?
    private var last: (path: PathBytes, root: PathBytes, directory: OpenDirectory)?
    /// The innermost root that holds the directory that was asked for last.
    private var holder: (directory: PathBytes, root: PathBytes?)?

    package init(roots: some Sequence<PathBytes>, in fileSystem: any FileSystem = .kernel) {
        self.roots = Set(roots)
        self.fileSystem = fileSystem
    }

    /// Closes the directories: another process may have moved them, or put links in their place.
    ///
    /// Such a change is reported after it, so within one turn the answers may be old.
    package func forget() {
        root = nil
        last = nil
    }

    /// The name of a path in its directory.
    ///
    /// - Throws: Why the directory can't be opened; `ELOOP` for one that is behind a link.
    package func place(of path: PathBytes) throws(SystemError) -> DiskProbe.Place {
        let parent = path.parent
        guard let root = root(holding: parent) else { return DiskProbe.Place(path) }
        return DiskProbe.Place(try directory(parent, below: root), PathBytes(path.lastComponent))
    }

    /// What is at the path now, without following any link below the root.
    package func look(at path: PathBytes, reading extras: DiskProbe.Extras = []) -> DiskProbe.Sight {
        do throws(SystemError) {
            return fileSystem.stat(try place(of: path), reading: extras)
        } catch {
            return DiskProbe.Sight(directory: error.errno)
        }
    }

    /// The names in a directory, in the order of the file system.
    ///
    /// - Throws: Why it can't be listed, or not to its end.
    package func names(in folder: PathBytes) throws(SystemError) -> [PathBytes] {
        guard let root = root(holding: folder) else { return try fileSystem.names(in: DiskProbe.Place(folder)) }
        return try fileSystem.names(in: DiskProbe.Place(directory(folder, below: root), "."))
    }

    /// Whether a process can still write to the regular file.
    package func writers(of path: PathBytes) -> DiskProbe.Holders {
        (try? place(of: path)).map { fileSystem.writers(of: $0) } ?? .unknown
    }

    /// Whether a directory between the root and the path is a symbolic link; the root itself may be one.
    package func isBehindLink(_ path: PathBytes, root: PathBytes) -> Bool {
        do throws(SystemError) {
            _ = try directory(path.parent, below: root)
            return false
        } catch {
            return error.errno == ELOOP
        }
    }

    private func root(holding directory: PathBytes) -> PathBytes? {
        if holder?.directory != directory { holder = (directory, directory.andParents.first { roots.contains($0) }) }
        return holder?.root
    }

    /// Whether the directory of the path is on overlayfs.
    package func isOnOverlay(_ path: PathBytes) -> Bool {
        (try? place(of: path)).map { fileSystem.isOnOverlay($0) } ?? false
    }

    private func directory(_ path: PathBytes, below root: PathBytes) throws(SystemError) -> OpenDirectory {
        if let last, last.path == path, last.root == root { return last.directory }
        if self.root?.path != root {
            self.root = (root, try fileSystem.open(root: root))
        }
        guard let base = self.root?.directory else { throw SystemError(errno: ENOENT) }
        var directory = base
        if path != root {
            guard let relative = path.relative(to: root) else { throw SystemError(errno: EXDEV) }
            directory = try fileSystem.open(PathBytes(relative), beneath: base)
        }
        last = (path, root, directory)
        return directory
    }
}

/// A directory's descriptor (`O_PATH`), closed with the last reference.
package final class OpenDirectory: Sendable {
    package let descriptor: Int32
    private let close: @Sendable (Int32) -> Void

    /// Takes over a descriptor, by which a file system knows the directory.
    package init(_ descriptor: Int32, close: @escaping @Sendable (Int32) -> Void) {
        self.descriptor = descriptor
        self.close = close
    }

    private convenience init(opened: Int32) throws(SystemError) {
        guard opened >= 0 else { throw SystemError(errno: -opened) }
        self.init(opened) { Glibc.close($0) }
    }

    convenience init(root: PathBytes) throws(SystemError) {
        try self.init(opened: root.withCString { cal_open_root($0) })
    }

    convenience init(_ path: PathBytes, beneath directory: OpenDirectory) throws(SystemError) {
        try self.init(
            opened: path.withCString { cal_open_beneath(directory.descriptor, $0, CAL_OPEN_FOLDER, 0) })
    }

    deinit { close(descriptor) }
}

extension DiskProbe {
    /// A name in an open directory, or a path by itself.
    package struct Place: Sendable {
        package let directory: OpenDirectory?
        package let name: PathBytes

        package init(_ directory: OpenDirectory, _ name: PathBytes) {
            self.directory = directory
            self.name = name
        }

        /// A path that is not a watched one.
        package init(_ path: PathBytes) {
            directory = nil
            name = path
        }

        var descriptor: Int32 { directory?.descriptor ?? AT_FDCWD }

        /// Opens a regular file for reading, no link and without waiting for a pipe: the descriptor, or a negative errno.
        package func openForReading() -> Int32 { name.withCString { cal_open_entry(descriptor, $0, CAL_OPEN_READING) } }
    }

    static func isOnOverlay(_ place: Place) -> Bool {
        var type: UInt64 = 0
        return cal_file_system(place.descriptor, &type) == 0 && type == 0x794C_7630
    }

    /// Reads bytes of a regular file that still has the inode.
    static func read(_ place: Place, inode: UInt64, from offset: UInt64, count: Int) -> [UInt8] {
        let descriptor = place.openForReading()
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        var status = Glibc.stat()
        guard fstat(descriptor, &status) == 0, UInt64(status.st_ino) == inode else { return [] }
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                let end = buffer.baseAddress?.advanced(by: filled)
                let got = pread(descriptor, end, count - filled, off_t(offset) + off_t(filled))
                if got < 0, errno == EINTR { continue }
                guard got > 0 else { break }
                filled += got
            }
        }
    }

    /// What is at the path now, below the root that it is watched by.
    package static func look(at path: PathBytes, below root: PathBytes, reading extras: Extras = []) -> Sight {
        WatchedPaths(roots: [root]).look(at: path, reading: extras)
    }

    /// Opens a watched file for reading: the descriptor, or a negative errno.
    package static func openForReading(_ path: PathBytes, below root: PathBytes) -> Int32 {
        do throws(SystemError) {
            return try WatchedPaths(roots: [root]).place(of: path).openForReading()
        } catch {
            return -error.errno
        }
    }
}

extension DiskProbe.Sight {
    /// What is seen in a directory that can't be opened: nothing, where there is none or only a link.
    package init(directory errno: Int32) {
        switch errno {
        case ENOENT, ENOTDIR, ENAMETOOLONG, ELOOP, EXDEV: self = .absent
        default: self = .unreadable(errno: errno)
        }
    }
}

import Glibc

/// The file system that the core works on: the kernel's, or a simulated one.
///
/// All that decides about events asks the disk by such a value. Handlers and programs work on the kernel's.
///
/// Calls block for as long as the file system does. Callable from any thread.
package protocol FileSystem: Sendable {
    /// Opens the directory of a root, which may be a symbolic link.
    func open(root: PathBytes) throws(SystemError) -> OpenDirectory

    /// Opens a directory by a relative path, following no link on the way.
    ///
    /// - Throws: `ELOOP` for one that is behind a link.
    func open(_ path: PathBytes, beneath directory: OpenDirectory) throws(SystemError) -> OpenDirectory

    /// The metadata of what is there now, without following a final symbolic link.
    func stat(_ place: DiskProbe.Place, reading extras: DiskProbe.Extras) -> DiskProbe.Sight

    /// The names in a directory in the order of the file system, without `.` and `..`.
    ///
    /// - Throws: Why it can't be listed, or not to its end.
    func names(in place: DiskProbe.Place) throws(SystemError) -> [PathBytes]

    /// Whether a process can still write to the regular file.
    func writers(of place: DiskProbe.Place) -> DiskProbe.Holders

    /// Whether a process holds a write lock on the regular file.
    func locks(of place: DiskProbe.Place) -> DiskProbe.Holders

    /// Whether the directory of the place is on overlayfs.
    func isOnOverlay(_ place: DiskProbe.Place) -> Bool

    /// Reads bytes of a regular file that still has the inode; none if it can't be read, or is another file by now.
    func read(_ place: DiskProbe.Place, inode: UInt64, from offset: UInt64, count: Int) -> [UInt8]

    /// The path without symbolic links; nil when there is nothing of that name.
    func resolve(_ path: PathBytes) -> PathBytes?

    /// Makes a directory and those above it that are missing, with the mode that the umask leaves.
    ///
    /// - Returns: 0, or the errno.
    func makeDirectory(_ path: PathBytes) -> Int32

    /// The mount points.
    var mountPoints: Set<PathBytes> { get }

    /// Whether the mount with this id of statx(2) is still there, at whatever mount point.
    func isMounted(_ mount: UInt64) -> Bool
}

extension FileSystem where Self == KernelFileSystem {
    /// The kernel's.
    package static var kernel: KernelFileSystem { KernelFileSystem() }
}

extension FileSystem {
    /// The metadata of what is at the path now, without following a final symbolic link.
    package func stat(_ path: PathBytes) -> DiskProbe.Sight { stat(DiskProbe.Place(path), reading: []) }

    package func stat(_ place: DiskProbe.Place) -> DiskProbe.Sight { stat(place, reading: []) }

    /// Whether there is anything of that name, where links lead.
    package func exists(_ path: PathBytes) -> Bool { resolve(path) != nil }

    /// How many entries a directory has; nil when it can't be listed.
    package func children(of directory: DiskProbe.Place) -> Int? { try? names(in: directory).count }
}

/// The file system of the kernel.
package struct KernelFileSystem: FileSystem {
    package init() {}

    package func open(root: PathBytes) throws(SystemError) -> OpenDirectory { try OpenDirectory(root: root) }

    package func open(_ path: PathBytes, beneath directory: OpenDirectory) throws(SystemError) -> OpenDirectory {
        try OpenDirectory(path, beneath: directory)
    }

    package func stat(_ place: DiskProbe.Place, reading extras: DiskProbe.Extras) -> DiskProbe.Sight {
        DiskProbe.look(at: place, reading: extras)
    }

    package func names(in place: DiskProbe.Place) throws(SystemError) -> [PathBytes] {
        var listing = try FolderNames(place.name, in: place.descriptor)
        let names = listing.rest()
        guard listing.error == 0 else { throw SystemError(errno: listing.error) }
        return names
    }

    package func writers(of place: DiskProbe.Place) -> DiskProbe.Holders { DiskProbe.writers(of: place) }

    package func locks(of place: DiskProbe.Place) -> DiskProbe.Holders { DiskProbe.locks(of: place) }

    package func isOnOverlay(_ place: DiskProbe.Place) -> Bool { DiskProbe.isOnOverlay(place) }

    package func read(_ place: DiskProbe.Place, inode: UInt64, from offset: UInt64, count: Int) -> [UInt8] {
        DiskProbe.read(place, inode: inode, from: offset, count: count)
    }

    package func resolve(_ path: PathBytes) -> PathBytes? { DiskProbe.resolve(path) }

    package func makeDirectory(_ path: PathBytes) -> Int32 {
        var missing = [path]
        while let directory = missing.last {
            if directory.withCString({ mkdir($0, 0o777) }) == 0 || errno == EEXIST {
                missing.removeLast()
                continue
            }
            guard errno == ENOENT, directory.parent != directory else { return errno }
            missing.append(directory.parent)
        }
        return exists(path) ? 0 : ENOENT
    }

    package var mountPoints: Set<PathBytes> { MountTable.points }

    package func isMounted(_ mount: UInt64) -> Bool { MountTable.isMounted(mount) }
}

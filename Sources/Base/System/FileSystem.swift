import CAlightLinux
import Glibc

/// The file system that the core works on: the kernel's, or a simulated one.
///
/// All code that decides about events accesses the disk through such a value. Handlers and programs use the kernel's
/// file system.
///
/// Calls block for as long as the file system does. Callable from any thread.
package protocol FileSystem: Sendable {
    /// Opens the directory of a root, which may be a symbolic link.
    func open(root: PathBytes) throws(SystemError) -> OpenFile

    /// Opens a directory by a relative path, without following any link.
    ///
    /// - Throws: `ELOOP` for a directory behind a link.
    func open(_ path: PathBytes, beneath directory: OpenFile) throws(SystemError) -> OpenFile

    /// Returns the current metadata, without following a final symbolic link.
    func stat(_ location: DiskProbe.Location, reading extras: DiskProbe.Extras) -> DiskProbe.StatResult

    /// Returns the names in a directory in the order of the file system, without `.` and `..`.
    ///
    /// - Throws: The error if it cannot be listed, or not to its end.
    func names(in location: DiskProbe.Location) throws(SystemError) -> [PathBytes]

    /// Checks whether a process can still write to the regular file.
    func writers(of location: DiskProbe.Location) -> DiskProbe.Holders

    /// Checks whether a process holds a write lock on the regular file.
    func locks(of location: DiskProbe.Location) -> DiskProbe.Holders

    /// Whether the directory is on overlayfs.
    func isOnOverlay(_ location: DiskProbe.Location) -> Bool

    /// Reads bytes of a regular file that still has the inode; returns none if it cannot be read, or is another file by
    /// now.
    func read(_ location: DiskProbe.Location, inode: UInt64, from offset: UInt64, count: Int) -> [UInt8]

    /// Returns the path without symbolic links; nil if it does not exist.
    func resolve(_ path: PathBytes) -> PathBytes?

    /// Creates a directory and its missing parents, with the default mode less the umask.
    ///
    /// - Returns: 0 or the errno.
    func makeDirectory(_ path: PathBytes) -> Int32

    /// The mount points.
    var mountPoints: Set<PathBytes> { get }

    /// Whether the mount with this id of statx(2) still exists, at any mount point.
    func isMounted(_ mount: UInt64) -> Bool
}

extension FileSystem where Self == KernelFileSystem {
    /// The file system of the kernel.
    package static var kernel: KernelFileSystem { KernelFileSystem() }
}

extension FileSystem {
    /// Returns the current metadata of the path, without following a final symbolic link.
    package func stat(_ path: PathBytes) -> DiskProbe.StatResult { stat(DiskProbe.Location(path), reading: []) }

    package func stat(_ location: DiskProbe.Location) -> DiskProbe.StatResult { stat(location, reading: []) }

    /// Whether the path exists, following links.
    package func exists(_ path: PathBytes) -> Bool { resolve(path) != nil }

    /// Returns the number of entries of a directory; nil if it cannot be listed.
    package func children(of directory: DiskProbe.Location) -> Int? { try? names(in: directory).count }
}

/// The file system of the kernel.
package struct KernelFileSystem: FileSystem {
    package init() {}

    package func open(root: PathBytes) throws(SystemError) -> OpenFile {
        try OpenFile(opened: root.withCString { cal_open_root($0) })
    }

    package func open(_ path: PathBytes, beneath directory: OpenFile) throws(SystemError) -> OpenFile {
        try OpenFile(opened: path.withCString { cal_open_beneath(directory.descriptor, $0, CAL_OPEN_DIRECTORY, 0) })
    }

    package func stat(_ location: DiskProbe.Location, reading extras: DiskProbe.Extras) -> DiskProbe.StatResult {
        DiskProbe.inspect(at: location, reading: extras)
    }

    package func names(in location: DiskProbe.Location) throws(SystemError) -> [PathBytes] {
        try DiskProbe.names(opened: location.name.withCString { cal_open_directory(location.descriptor, $0) })
    }

    package func writers(of location: DiskProbe.Location) -> DiskProbe.Holders { DiskProbe.writers(of: location) }

    package func locks(of location: DiskProbe.Location) -> DiskProbe.Holders { DiskProbe.locks(of: location) }

    package func isOnOverlay(_ location: DiskProbe.Location) -> Bool {
        var type: UInt64 = 0
        return cal_file_system(location.descriptor, &type) == 0 && type == 0x794C_7630
    }

    package func read(_ location: DiskProbe.Location, inode: UInt64, from offset: UInt64, count: Int) -> [UInt8] {
        let descriptor = location.openForReading()
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

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
    ///
    /// Extended attributes take one more call, and one for each attribute.
    func stat(_ location: DiskProbe.Location, readingExtended: Bool) -> DiskProbe.StatResult

    /// Returns the names in a directory in the order of the file system, without `.` and `..`.
    ///
    /// - Throws: The error if it cannot be listed, or not to its end.
    func names(in location: DiskProbe.Location) throws(SystemError) -> [PathBytes]

    /// Checks whether a process can still write to the regular file: has it open for writing, or mapped writable.
    func writers(of location: DiskProbe.Location) -> DiskProbe.Holders

    /// Checks whether a process holds a write lock on the regular file, by flock(2) or fcntl(2).
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
    package func stat(_ path: PathBytes, readingExtended: Bool = false) -> DiskProbe.StatResult {
        stat(DiskProbe.Location(path), readingExtended: readingExtended)
    }

    package func stat(_ location: DiskProbe.Location) -> DiskProbe.StatResult { stat(location, readingExtended: false) }

    /// Returns the identity of the file at the path; nil if there is none, or it cannot be read.
    package func identity(of path: PathBytes) -> FileIdentity? {
        if case .present(let snapshot) = stat(path) { snapshot.identity } else { nil }
    }

    package func names(in directory: PathBytes) throws(SystemError) -> [PathBytes] {
        try names(in: DiskProbe.Location(directory))
    }

    package func writers(of path: PathBytes) -> DiskProbe.Holders { writers(of: DiskProbe.Location(path)) }

    /// Whether the path exists, following links.
    package func exists(_ path: PathBytes) -> Bool { resolve(path) != nil }

    /// Returns the number of entries of a directory; nil if it cannot be listed.
    package func children(of directory: DiskProbe.Location) -> Int? { try? names(in: directory).count }
}

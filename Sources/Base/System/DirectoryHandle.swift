package import CAlightLinux
import Glibc

/// A descriptor of a file or directory, closed with the last reference.
///
/// It never changes, so threads may share it. ``OwnedDescriptor`` is for the ends of pipes and sockets, which are closed
/// while they are referenced.
package final class OpenFile: Sendable {
    package let descriptor: Int32
    private let close: @Sendable (Int32) -> Void

    /// Takes ownership of a descriptor, which identifies the file in the kernel, or in a simulated file system.
    package init(_ descriptor: Int32, close: @escaping @Sendable (Int32) -> Void = { Glibc.close($0) }) {
        self.descriptor = descriptor
        self.close = close
    }

    /// Takes ownership of the result of a call that returns a descriptor or a negative errno.
    package convenience init(opened: Int32) throws(SystemError) {
        guard opened >= 0 else { throw SystemError(errno: -opened) }
        self.init(opened)
    }

    deinit { close(descriptor) }

    /// Returns the current metadata.
    package func snapshot() throws(SystemError) -> Snapshot {
        var status = cal_stat()
        let error = cal_stat_descriptor(descriptor, &status)
        guard error == 0 else { throw SystemError(errno: error) }
        return Snapshot(status)
    }
}

/// An open directory of the kernel, in which all operations use single names.
///
/// Therefore it remains the directory that was checked, even if another one takes its place.
package struct DirectoryHandle: Sendable {
    package let file: OpenFile
    /// The path through which the directory was opened, for messages and outputs.
    package let path: PathBytes

    package init(_ file: OpenFile, _ path: PathBytes) {
        self.file = file
        self.path = path
    }

    /// Takes ownership of a descriptor.
    package init(_ descriptor: Int32, _ path: PathBytes) { self.init(OpenFile(descriptor), path) }

    /// Opens a directory by its path and follows links, as root only those that no other user can replace.
    package init(opening path: PathBytes) throws(SystemError) {
        self.init(try OpenFile(opened: path.withCString { cal_open_root($0) }), path)
    }

    package var descriptor: Int32 { file.descriptor }

    /// Returns the path of a name in the directory.
    package func path(of name: PathBytes) -> PathBytes { path.appending(name.bytes) }

    /// Returns the metadata of a name without following a link; nil if it does not exist.
    package func stat(_ name: PathBytes) throws(SystemError) -> Snapshot? {
        switch KernelFileSystem().stat(DiskProbe.Location(file, name)) {
        case .present(let snapshot): snapshot
        case .absent: nil
        case .unreadable(let errno): throw SystemError(errno: errno)
        }
    }

    /// Opens a name without following a link.
    package func open(_ name: PathBytes, _ what: cal_opening) throws(SystemError) -> OpenFile {
        try OpenFile(opened: name.withCString { cal_open_entry(descriptor, $0, what) })
    }

    /// Renames a name of this directory; returns 0 or the errno: EEXIST if the new name exists and may not be replaced.
    package func rename(_ name: PathBytes, to target: DirectoryHandle, _ new: PathBytes, _ how: cal_renaming) -> Int32 {
        let error = name.withCString { from in
            new.withCString { cal_rename(descriptor, from, target.descriptor, $0, how) }
        }
        guard error == EINVAL || error == ENOSYS, how == CAL_RENAME_NEW else { return error }
        return renameToNew(name, to: target, new)
    }

    /// Renames to a name that must not exist, without RENAME_NOREPLACE, as on NFS; returns 0 or the errno.
    ///
    /// The name is first claimed in a way that can succeed only once: as a directory, by a hard link, or, where there
    /// are no hard links, as an empty file. A directory or an empty file is then replaced.
    package func renameToNew(_ name: PathBytes, to target: DirectoryHandle, _ new: PathBytes) -> Int32 {
        guard let snapshot = try? stat(name) else { return ENOENT }
        if snapshot.type == .directory {
            guard new.withCString({ mkdirat(target.descriptor, $0, 0o700) }) == 0 else { return errno }
            // A directory can replace only an empty directory.
            return replace(name, in: target, new) { unlinkat(target.descriptor, $0, AT_REMOVEDIR) }
        }
        let linked = name.withCString { from in new.withCString { linkat(descriptor, from, target.descriptor, $0, 0) } }
        if linked == 0 {
            // A file that another process has put there in the meantime is a different file, and remains.
            guard (try? stat(name))?.identity == snapshot.identity else { return 0 }
            return unlink(name)
        }
        guard [EPERM, EOPNOTSUPP, ENOSYS, EMLINK].contains(errno) else { return errno }
        let flags = O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC
        let placeholder = new.withCString { openat(target.descriptor, $0, flags, 0o600) }
        guard placeholder >= 0 else { return errno }
        close(placeholder)
        return replace(name, in: target, new) { unlinkat(target.descriptor, $0, 0) }
    }

    /// Replaces the placeholder that was created for a name; removes the placeholder if that fails.
    private func replace(
        _ name: PathBytes, in target: DirectoryHandle, _ new: PathBytes, remove: (UnsafePointer<CChar>) -> Int32
    ) -> Int32 {
        let renamed = name.withCString { from in new.withCString { renameat(descriptor, from, target.descriptor, $0) } }
        guard renamed != 0 else { return 0 }
        let error = errno
        _ = new.withCString { remove($0) }
        return error
    }

    /// Removes a name that is not a directory; returns 0 or the errno.
    @discardableResult
    package func unlink(_ name: PathBytes) -> Int32 {
        name.withCString { unlinkat(descriptor, $0, 0) } == 0 ? 0 : errno
    }

    /// Flushes the entries of the directory to the disk; if it is not readable, that is left to the file system.
    package func flush() {
        let readable = openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard readable >= 0 else { return }
        fsync(readable)
        close(readable)
    }
}

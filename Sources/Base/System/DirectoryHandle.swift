package import CAlightLinux
import Glibc

/// A descriptor that is closed when the object is released.
package final class OpenFile: Sendable {
    package let descriptor: Int32

    package init(_ descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Returns the current metadata.
    package func snapshot() throws(SystemError) -> Snapshot {
        var status = cal_stat()
        let error = cal_stat_descriptor(descriptor, &status)
        guard error == 0 else { throw SystemError(errno: error) }
        return Snapshot(status)
    }
}

/// An open directory, in which all operations use single names.
///
/// Therefore it remains the directory that was checked, even if another one takes its place.
package final class DirectoryHandle: Sendable {
    package let descriptor: Int32
    /// The path through which the directory was opened, for messages and outputs.
    package let path: PathBytes

    package init(_ descriptor: Int32, _ path: PathBytes) {
        self.descriptor = descriptor
        self.path = path
    }

    deinit { close(descriptor) }

    /// Opens a directory by its path and follows links, as root only those that no other user can replace.
    package static func opened(_ path: PathBytes) -> Result<DirectoryHandle, SystemError> {
        let opened = path.withCString { cal_open_root($0) }
        return opened >= 0 ? .success(DirectoryHandle(opened, path)) : .failure(SystemError(errno: -opened))
    }

    /// Returns the path of a name in the directory.
    package func path(of name: PathBytes) -> PathBytes { path.appending(name.bytes) }

    /// Returns the metadata of a name without following a link; nil if it does not exist.
    package func stat(_ name: PathBytes) throws(SystemError) -> Snapshot? {
        var status = cal_stat()
        let error = name.withCString { cal_stat_entry(descriptor, $0, 0, &status) }
        switch error {
        case 0: return Snapshot(status)
        case ENOENT, ENAMETOOLONG: return nil
        default: throw SystemError(errno: error)
        }
    }

    /// Opens a name without following a link; returns the errno if that fails.
    package func open(_ name: PathBytes, _ what: cal_opening) -> Result<OpenFile, SystemError> {
        let opened = name.withCString { cal_open_entry(descriptor, $0, what) }
        return opened >= 0 ? .success(OpenFile(opened)) : .failure(SystemError(errno: -opened))
    }

    /// Whether both are the same directory.
    package func isSame(as other: DirectoryHandle) -> Bool {
        var here = cal_stat()
        var there = cal_stat()
        guard cal_stat_descriptor(descriptor, &here) == 0, cal_stat_descriptor(other.descriptor, &there) == 0 else {
            return false
        }
        return FileIdentity(here).withoutBirth == FileIdentity(there).withoutBirth
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

import CAlightLinux
import Glibc

/// The symbolic links that root follows: those that only root can have created.
package enum LinkTrust {
    /// Whether this process is root and sees the real owners of files.
    package static var isMeaningful: Bool { cal_is_distrustful() != 0 }

    /// Returns why root does not follow one of the links on the path; nil when there is none, or this process is not
    /// root.
    package static func refusal(on path: PathBytes) -> String? {
        guard isMeaningful else { return nil }
        for (location, found) in PathWalk(path) {
            guard let snapshot = found.snapshot, let others = others(replacing: location, snapshot) else { continue }
            return "root does not follow the symbolic link '\(location)', which \(others) could replace"
        }
        return nil
    }

    /// Returns the users who could replace what the path names, if it is a link; nil if root follows it.
    package static func others(replacing location: PathBytes, _ snapshot: Snapshot) -> String? {
        let directory = location.parent
        guard isMeaningful, snapshot.type == .symlink, let above = KernelFileSystem().stat(directory).snapshot else {
            return nil
        }
        if let owner = [snapshot.uid, above.uid].first(where: { $0 != 0 }) { return "user \(owner)" }
        return isOpen(directory, above) ? "other users" : nil
    }

    /// Whether users other than the owner can change a file, or replace any name in a directory.
    package static func isOpen(_ location: PathBytes, _ snapshot: Snapshot) -> Bool {
        let mode = mode_t(snapshot.mode)
        if snapshot.type == .directory, mode & S_ISVTX != 0 { return false }
        return mode & S_IWOTH != 0 || mode & S_IWGRP != 0 && (snapshot.gid != 0 || hasAccessList(location))
    }

    /// Whether the file has an access control list; then the group bits are the most that any user in it has.
    private static func hasAccessList(_ location: PathBytes) -> Bool {
        location.withCString { cal_read_attribute($0, "system.posix_acl_access", nil, 0) } > 0
    }
}

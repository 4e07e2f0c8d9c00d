import CAlightLinux
import Glibc
package import Rules
package import System

/// Checks whether users other than root could change what root is about to do.
package enum OwnershipCheck {
    /// Returns a problem if a user other than root could change or replace the file; nil if none could.
    ///
    /// Checks the file and all directories above it, and symbolic links on the path with their targets. In a directory
    /// with the sticky bit, such as `/tmp`, only its owner can replace a file or link, so files owned by root are safe
    /// there.
    package static func problem(with path: PathBytes) -> HandlerProblem? {
        walk(path) { location, snapshot in
            guard snapshot.type == .symlink else { return problem(at: location, snapshot) }
            guard snapshot.uid != 0 else { return nil }
            return HandlerProblem(
                message: "the link '\(location)' belongs to user \(snapshot.uid), who could change what root runs",
                help: "run: chown -h root:root '\(location)'")
        }
    }

    /// Returns a problem if a user other than root could change what a command does; nil if none could.
    package static func problem(running executable: PathBytes, _ arguments: [[UInt8]] = []) -> HandlerProblem? {
        ProgramFiles.of(executable, arguments).lazy.compactMap { problem(with: $0) }.first
    }

    /// Returns the first symbolic link on the path that root does not follow, and the users who could replace it; nil
    /// when there is none, or this process is not root.
    package static func untrustedLink(on path: PathBytes) -> (path: PathBytes, others: String)? {
        guard isMeaningful else { return nil }
        return walk(path) { location, snapshot in
            let directory = location.parent
            guard snapshot.type == .symlink, let above = self.snapshot(of: directory) else { return nil }
            guard let owner = [snapshot.uid, above.uid].first(where: { $0 != 0 }) else {
                return problem(at: directory, above).map { _ in (location, "other users") }
            }
            return (location, "user \(owner)")
        }
    }

    /// Visits `/`, the directories on the path, and links with their targets, until the body returns a finding.
    private static func walk<Finding>(
        _ path: PathBytes, _ body: (PathBytes, Snapshot) -> Finding?
    ) -> Finding? {
        if let top = snapshot(of: "/"), let finding = body("/", top) { return finding }
        for (location, found) in PathWalk(path.normalized) {
            if let snapshot = found.snapshot, let finding = body(location, snapshot) { return finding }
        }
        return nil
    }

    /// Whether this process is root and sees the real owners of files.
    package static var isMeaningful: Bool { cal_is_distrustful() != 0 }

    /// Returns the problem of a file or directory itself.
    private static func problem(at location: PathBytes, _ snapshot: Snapshot) -> HandlerProblem? {
        if snapshot.uid != 0 {
            return HandlerProblem(
                message: "'\(location)' belongs to user \(snapshot.uid), who could change what root runs",
                help: "run: chown root:root '\(location)'")
        }
        let mode = mode_t(snapshot.mode)
        let isSticky = snapshot.type == .directory && mode & S_ISVTX != 0
        let isOpenToGroup = mode & S_IWGRP != 0 && (snapshot.gid != 0 || hasAccessList(location))
        guard mode & S_IWOTH != 0 || isOpenToGroup, !isSticky else { return nil }
        return HandlerProblem(
            message: "'\(location)' can be changed by others than root (mode \(String(mode, radix: 8, width: 4)))",
            help: "run: chmod go-w '\(location)'")
    }

    /// Returns whether the file has an access control list; then the group bits are the most that any user in it has.
    private static func hasAccessList(_ location: PathBytes) -> Bool {
        location.withCString { cal_read_attribute($0, "system.posix_acl_access", nil, 0) } > 0
    }

    private static func snapshot(of location: PathBytes) -> Snapshot? { KernelFileSystem().stat(location).snapshot }
}

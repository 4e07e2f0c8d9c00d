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
        walk(path) { location, status, _ in
            guard status.st_mode & S_IFMT == S_IFLNK else { return problem(at: location, status) }
            guard status.st_uid != 0 else { return nil }
            return HandlerProblem(
                message: "the link '\(location)' belongs to user \(status.st_uid), who could change what root runs",
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
        return walk(path) { location, status, directory in
            guard status.st_mode & S_IFMT == S_IFLNK, let above = self.status(of: directory) else { return nil }
            guard let owner = [status.st_uid, above.st_uid].first(where: { $0 != 0 }) else {
                return problem(at: directory, above).map { _ in (location, "other users") }
            }
            return (location, "user \(owner)")
        }
    }

    /// Visits `/`, the directories on the path, and links with their targets, until the body returns a finding.
    private static func walk<Finding>(
        _ path: PathBytes, _ body: (PathBytes, stat, _ directory: PathBytes) -> Finding?
    ) -> Finding? {
        var done: PathBytes = "/"
        if let finding = status(of: done).flatMap({ body(done, $0, done) }) { return finding }
        // The names that are still to be visited, the next one last.
        var names = Array(path.normalized.bytes.split(separator: .slash).reversed())
        var links = 0
        while let name = names.popLast() {
            if name.elementsEqual([.dot]) { continue }
            if name.elementsEqual([.dot, .dot]) {
                done = done.parent
                continue
            }
            let location = done.appending(name)
            guard let status = status(of: location) else { return nil }
            if let finding = body(location, status, done) { return finding }
            guard status.st_mode & S_IFMT == S_IFLNK else {
                done = location
                continue
            }
            links += 1
            // The kernel follows as many.
            guard links <= 40, let target = KernelFileSystem().target(of: location)?.bytes else { return nil }
            if target.first == .slash { done = "/" }
            names += target.split(separator: .slash).reversed()
        }
        return nil
    }

    /// Whether this process is root and sees the real owners of files.
    package static var isMeaningful: Bool { cal_is_distrustful() != 0 }

    /// Returns the problem of a file or directory itself.
    private static func problem(at location: PathBytes, _ status: stat) -> HandlerProblem? {
        if status.st_uid != 0 {
            return HandlerProblem(
                message: "'\(location)' belongs to user \(status.st_uid), who could change what root runs",
                help: "run: chown root:root '\(location)'")
        }
        let isSticky = status.st_mode & S_IFMT == S_IFDIR && status.st_mode & S_ISVTX != 0
        let isOpenToGroup = status.st_mode & S_IWGRP != 0 && (status.st_gid != 0 || hasAccessList(location))
        guard status.st_mode & S_IWOTH != 0 || isOpenToGroup, !isSticky else { return nil }
        let mode = String(status.st_mode & 0o7777, radix: 8, width: 4)
        return HandlerProblem(
            message: "'\(location)' can be changed by others than root (mode \(mode))",
            help: "run: chmod go-w '\(location)'")
    }

    /// Returns whether the file has an access control list; then the group bits are the most that any user in it has.
    private static func hasAccessList(_ location: PathBytes) -> Bool {
        location.withCString { cal_read_attribute($0, "system.posix_acl_access", nil, 0) } > 0
    }

    private static func status(of location: PathBytes) -> stat? {
        var status = stat()
        return location.withCString { lstat($0, &status) } == 0 ? status : nil
    }
}

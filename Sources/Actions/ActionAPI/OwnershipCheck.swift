package import Rules
package import System

/// Checks whether users other than root could change what root is about to do.
package enum OwnershipCheck {
    /// Returns a problem if a user other than root could change or replace the file; nil if none could.
    ///
    /// Checks the file and all directories above it, and symbolic links on the path with their targets. In a directory
    /// with the sticky bit, such as `/tmp`, only its owner can replace a file or link, so files owned by root are safe
    /// there.
    package static func problem(with path: PathBytes) -> Problem? {
        let top: PathBytes = "/"
        if let problem = problem(at: top, KernelFileSystem().stat(top)) { return problem }
        for (location, found) in PathWalk(path.normalized) {
            if let problem = problem(at: location, found) { return problem }
        }
        return nil
    }

    /// Returns a problem if a user other than root could change what a command does; nil if none could.
    package static func problem(
        running executable: PathBytes, _ arguments: [[UInt8]] = [],
        searchPath: [UInt8] = Array(Action.searchPath.utf8)
    ) -> Problem? {
        ProgramFiles.of([executable.bytes] + arguments, searchPath: searchPath).lazy.compactMap { problem(with: $0) }
            .first
    }

    /// Returns the problem of a file, a directory or a link itself.
    private static func problem(at location: PathBytes, _ found: DiskProbe.StatResult) -> Problem? {
        guard let snapshot = found.snapshot else { return nil }
        let isLink = snapshot.type == .symlink
        if snapshot.uid != 0 {
            let noun = isLink ? "the link '\(location)'" : "'\(location)'"
            return Problem(
                "\(noun) belongs to user \(snapshot.uid), who could change what root runs",
                help: "run: chown \(isLink ? "-h " : "")root:root '\(location)'")
        }
        guard !isLink, LinkTrust.isOpen(location, snapshot) else { return nil }
        let mode = String(snapshot.mode, radix: 8, width: 4)
        return Problem(
            "'\(location)' can be changed by others than root (mode \(mode))", help: "run: chmod go-w '\(location)'")
    }
}

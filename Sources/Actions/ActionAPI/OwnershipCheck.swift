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
        walk(path) { location, snapshot in
            guard snapshot.type == .symlink else { return problem(at: location, snapshot) }
            guard snapshot.uid != 0 else { return nil }
            return Problem(
                "the link '\(location)' belongs to user \(snapshot.uid), who could change what root runs",
                help: "run: chown -h root:root '\(location)'")
        }
    }

    /// Returns a problem if a user other than root could change what a command does; nil if none could.
    package static func problem(
        running executable: PathBytes, _ arguments: [[UInt8]] = [],
        searchPath: [UInt8] = Array(Action.searchPath.utf8)
    ) -> Problem? {
        ProgramFiles.of(executable, arguments, searchPath: searchPath).lazy.compactMap { problem(with: $0) }.first
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

    /// Returns the problem of a file or directory itself.
    private static func problem(at location: PathBytes, _ snapshot: Snapshot) -> Problem? {
        if snapshot.uid != 0 {
            return Problem(
                "'\(location)' belongs to user \(snapshot.uid), who could change what root runs",
                help: "run: chown root:root '\(location)'")
        }
        guard LinkTrust.isOpen(location, snapshot) else { return nil }
        let mode = String(snapshot.mode, radix: 8, width: 4)
        return Problem(
            "'\(location)' can be changed by others than root (mode \(mode))", help: "run: chmod go-w '\(location)'")
    }

    private static func snapshot(of location: PathBytes) -> Snapshot? { KernelFileSystem().stat(location).snapshot }
}

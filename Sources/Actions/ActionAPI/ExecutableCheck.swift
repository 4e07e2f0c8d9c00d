import Glibc
package import Rules
package import System

/// Checks executables before they are trusted.
package enum ExecutableCheck {
    /// Returns the executable of the given name in `Action.searchPath`; nil when there is none.
    package static func find(_ name: String) -> PathBytes? {
        guard !name.isEmpty, !name.contains("/") else { return nil }
        let paths = Action.searchPath.split(separator: ":").lazy.map { PathBytes(String($0)).appending(name) }
        return paths.first { problem(with: $0) == nil }
    }

    /// Returns the reason why the path cannot be executed; nil when it can.
    package static func problem(with path: PathBytes) -> Problem? {
        var status = stat()
        guard path.withCString({ stat($0, &status) }) == 0 else {
            let reason = errno == ENOENT ? "doesn't exist" : "can't be reached: \(SystemError(errno: errno))"
            return Problem("'\(path)' \(reason)")
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            return Problem("'\(path)' is not a regular file")
        }
        guard path.withCString({ access($0, X_OK) }) == 0 else {
            return Problem("'\(path)' is not executable", help: "run: chmod +x '\(path)'")
        }
        return nil
    }
}

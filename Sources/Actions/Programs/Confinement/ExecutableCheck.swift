import FileEvents
import Glibc
package import Rules
package import System

/// Looks at executables before they are trusted.
package enum ExecutableCheck {
    /// The executable of that name in ``ProgramEnvironment/searchPath``.
    package static func find(_ name: String) -> PathBytes? {
        guard !name.isEmpty, !name.contains("/") else { return nil }
        for folder in ProgramEnvironment.searchPath.split(separator: ":") {
            let path = PathBytes(String(folder)).appending(name)
            if problem(with: path) == nil { return path }
        }
        return nil
    }

    /// Why the path can't be executed; nil when it can.
    package static func problem(with path: PathBytes) -> HandlerProblem? {
        var status = stat()
        guard path.withCString({ stat($0, &status) }) == 0 else {
            let reason = errno == ENOENT ? "doesn't exist" : "can't be reached: \(String(cString: strerror(errno)))"
            return HandlerProblem(message: "'\(path)' \(reason)", help: nil)
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            return HandlerProblem(message: "'\(path)' is not a regular file", help: nil)
        }
        guard path.withCString({ access($0, X_OK) }) == 0 else {
            return HandlerProblem(message: "'\(path)' is not executable", help: "run: chmod +x '\(path)'")
        }
        return nil
    }

    /// Four octal digits.
    static func octal(_ mode: mode_t) -> String {
        let digits = String(mode & 0o7777, radix: 8)
        return String(repeating: "0", count: 4 - digits.count) + digits
    }
}

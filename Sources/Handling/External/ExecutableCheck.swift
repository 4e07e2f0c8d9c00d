package import FileEvents
import Glibc
import Settling
package import Rules

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

    /// Who but root could change the file, or put another in its place; nil when nobody can.
    ///
    /// The file and all folders above it are looked at, also behind symbolic
    /// links. A folder with the sticky bit, as `/tmp` is, keeps what root owns safe.
    package static func ownershipProblem(with path: PathBytes) -> HandlerProblem? {
        var places = ancestry(of: path)
        if let resolved = DiskProbe.resolve(path) { places += ancestry(of: resolved).filter { !places.contains($0) } }
        for place in places {
            var status = stat()
            guard place.withCString({ stat($0, &status) }) == 0 else { continue }
            if status.st_uid != 0 {
                return HandlerProblem(
                    message: "'\(place)' belongs to user \(status.st_uid), who could change what root runs",
                    help: "run: chown root:root '\(place)'")
            }
            let isSticky = status.st_mode & S_IFMT == S_IFDIR && status.st_mode & S_ISVTX != 0
            let isOpen = status.st_mode & S_IWOTH != 0 || (status.st_mode & S_IWGRP != 0 && status.st_gid != 0)
            if isOpen && !isSticky {
                return HandlerProblem(
                    message: "'\(place)' can be changed by others than root (mode \(octal(status.st_mode)))",
                    help: "run: chmod go-w '\(place)'")
            }
        }
        return nil
    }

    private static func ancestry(of path: PathBytes) -> [PathBytes] {
        var places = [path.normalized]
        while let last = places.last, last.parent != last, last.bytes.first == .slash { places.append(last.parent) }
        return places
    }

    /// Four octal digits.
    static func octal(_ mode: mode_t) -> String {
        let digits = String(mode & 0o7777, radix: 8)
        return String(repeating: "0", count: 4 - digits.count) + digits
    }
}

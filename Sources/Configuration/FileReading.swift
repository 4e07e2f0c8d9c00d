import Glibc
import Rules
import System

/// Reads whole regular files up to a size limit.
enum FileReading {
    enum Kind { case file, directory, other(String), missing(Int32) }

    /// Returns the kind of file at a path, following symbolic links.
    static func kind(of path: PathBytes) -> Kind {
        var status = stat()
        guard path.withCString({ stat($0, &status) }) == 0 else { return .missing(errno) }
        switch status.st_mode & S_IFMT {
        case S_IFREG: return .file
        case S_IFDIR: return .directory
        case S_IFIFO: return .other("a pipe")
        case S_IFSOCK: return .other("a socket")
        default: return .other("a device")
        }
    }

    /// Reads the bytes of a regular file.
    ///
    /// This never blocks: a pipe or a device is rejected before it is opened, and one that replaces the file in
    /// between is opened without waiting.
    static func read(_ path: PathBytes, limit: Int) throws(Problem) -> [UInt8] {
        switch kind(of: path) {
        case .missing(let error): throw missing(error)
        case .directory: throw Problem("this is a directory, not a file")
        case .other(let noun): throw Problem("this is \(noun), not a file", help: "give a regular file")
        case .file: break
        }
        let descriptor = path.withCString { open($0, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY) }
        guard descriptor >= 0 else { throw missing(errno) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw Problem("this is no longer a file")
        }
        guard status.st_size <= limit else { throw tooLarge(Int(status.st_size), limit: limit) }
        // To the end, since a file in /proc has no size and a file may grow during the read.
        guard let bytes = ProcFile.bytes(of: descriptor, limit: limit) else { throw missing(errno) }
        guard bytes.count <= limit else { throw tooLarge(bytes.count, limit: limit) }
        return bytes
    }

    private static func tooLarge(_ size: Int, limit: Int) -> Problem {
        Problem("the file has \(size) bytes, but at most \(limit) are read", help: "split it")
    }

    private static func missing(_ error: Int32) -> Problem {
        let message =
            switch error {
            case ENOENT, ENOTDIR: "no such file"
            case EACCES, EPERM: "cannot read the file: permission denied"
            default: "cannot read the file: \(text(of: error))"
            }
        return Problem(message)
    }

    /// Returns the system's message for an error, starting in lower case.
    static func text(of error: Int32) -> String {
        let text = SystemError(errno: error).description
        return text.prefix(1).lowercased() + text.dropFirst()
    }

    /// Returns the names in a directory, sorted by their bytes.
    static func names(in directory: PathBytes) throws(Problem) -> [[UInt8]] {
        do throws(SystemError) {
            return try KernelFileSystem().names(following: directory).sorted().map(\.bytes)
        } catch {
            let reason = error.errno == EACCES ? "permission denied" : text(of: error.errno)
            throw Problem("cannot read the directory: \(reason)")
        }
    }
}

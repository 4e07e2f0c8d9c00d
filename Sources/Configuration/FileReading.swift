import FileEvents
import Glibc
import System

/// Reads whole files, and only what is a file and small enough.
enum FileReading {
    /// Why a file was not read, as the two halves of a diagnostic.
    struct Problem: Error {
        var message: String
        var help: String?
    }

    enum Kind { case file, folder, other(String), missing(Int32) }

    /// What a path names, links followed.
    static func kind(of path: PathBytes) -> Kind {
        var status = stat()
        guard path.withCString({ stat($0, &status) }) == 0 else { return .missing(errno) }
        switch status.st_mode & S_IFMT {
        case S_IFREG: return .file
        case S_IFDIR: return .folder
        case S_IFIFO: return .other("a pipe")
        case S_IFSOCK: return .other("a socket")
        default: return .other("a device")
        }
    }

    /// The bytes of a regular file.
    ///
    /// Nothing here can hang: a pipe or a device is refused before it is opened,
    /// and is not waited for if it takes the file's place in between.
    static func read(_ path: PathBytes, limit: Int) throws(Problem) -> [UInt8] {
        switch kind(of: path) {
        case .missing(let error): throw missing(error)
        case .folder: throw Problem(message: "this is a directory, not a file")
        case .other(let noun): throw Problem(message: "this is \(noun), not a file", help: "give a regular file")
        case .file: break
        }
        let descriptor = path.withCString { open($0, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY) }
        guard descriptor >= 0 else { throw missing(errno) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw Problem(message: "this is not a file any more")
        }
        guard status.st_size <= limit else { throw tooLarge(Int(status.st_size), limit: limit) }
        return try bytes(of: descriptor, limit: limit)
    }

    /// Reads on to the end, since a file in /proc has no size, and one may grow while it is read.
    private static func bytes(of descriptor: Int32, limit: Int) throws(Problem) -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw missing(errno) }
            guard count > 0 else { return bytes }
            bytes += buffer[..<count]
            guard bytes.count <= limit else { throw tooLarge(bytes.count, limit: limit) }
        }
    }

    private static func tooLarge(_ size: Int, limit: Int) -> Problem {
        Problem(message: "the file has \(size) bytes, but at most \(limit) are read", help: "split it")
    }

    private static func missing(_ error: Int32) -> Problem {
        switch error {
        case ENOENT, ENOTDIR: Problem(message: "there is no such file", help: nil)
        case EACCES, EPERM: Problem(message: "cannot read the file: permission denied", help: nil)
        default: Problem(message: "cannot read the file: \(text(of: error))", help: nil)
        }
    }

    /// The system's words for an error, without their capital.
    static func text(of error: Int32) -> String {
        let text = String(cString: strerror(error))
        return text.prefix(1).lowercased() + text.dropFirst()
    }

    /// The names in a folder, sorted by their bytes.
    static func names(in folder: PathBytes) throws(Problem) -> [[UInt8]] {
        do throws(SystemError) {
            return try DiskProbe.names(following: folder).map(\.bytes).sorted { $0.lexicographicallyPrecedes($1) }
        } catch {
            let reason = error.errno == EACCES ? "permission denied" : text(of: error.errno)
            throw Problem(message: "cannot read the directory: \(reason)", help: nil)
        }
    }
}

import Glibc
package import System

/// The file that stores the token across restarts, readable only by its owner.
package enum TokenFile {
    /// Returns the path of the token file: beside the journal, which no other instance uses.
    package static func path(beside journal: PathBytes) -> PathBytes { PathBytes(journal.bytes + Array("-token".utf8)) }

    /// Reads the token; if there is no file, creates it with a new token.
    ///
    /// - Throws: A `ControlProblem` when it cannot be read or created, or when other users may have read it.
    package static func token(at path: PathBytes) throws(ControlProblem) -> String {
        // Does not follow symbolic links, and does not block if another kind of file is in its place.
        let descriptor = path.withCString { open($0, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) }
        if descriptor >= 0 {
            defer { close(descriptor) }
            return try read(descriptor, path)
        }
        switch errno {
        case ENOENT: return try make(at: path)
        case ELOOP: throw ControlProblem("the token file '\(path)' is a link", help: deletion)
        case let error: throw failure("read", path, error)
        }
    }

    private static let deletion = "delete it: the next start creates another one, with another token"

    private static func failure(_ verb: String, _ path: PathBytes, _ error: Int32) -> ControlProblem {
        ControlProblem(
            "cannot \(verb) the token file '\(path)': \(SystemError(errno: error))",
            help: "check that the directory is writable, or listen only at 127.0.0.1, where no token is needed")
    }

    // MARK: Reading

    private static func read(_ descriptor: Int32, _ path: PathBytes) throws(ControlProblem) -> String {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure("read", path, errno) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw ControlProblem("the token file '\(path)' is not a regular file", help: deletion)
        }
        guard status.st_uid == geteuid() else {
            throw ControlProblem("the token file '\(path)' belongs to user \(status.st_uid)", help: deletion)
        }
        guard status.st_mode & 0o077 == 0 else {
            let mode = String(status.st_mode & 0o7777, radix: 8)
            throw ControlProblem(
                "other users may access the token file '\(path)' (mode 0\(mode))",
                help: "run: chmod 600 '\(path)'; if another user may have read it, \(deletion)")
        }
        guard let bytes = ProcFile.bytes(of: descriptor, limit: longest) else { throw failure("read", path, errno) }
        let lines = bytes.split(separator: UInt8(ascii: "\n"))
        // Such bytes need no encoding in a link and in a cookie.
        guard lines.count == 1, (shortest...longest).contains(lines[0].count),
            lines[0].allSatisfy({ $0.isAlphanumeric || "-_".utf8.contains($0) })
        else { throw ControlProblem("there is no token in '\(path)'", help: deletion) }
        return String(decoding: lines[0], as: UTF8.self)
    }

    /// The length limits of a token that was written by hand.
    private static let shortest = 32
    private static let longest = 256

    // MARK: Creating

    private static func make(at path: PathBytes) throws(ControlProblem) -> String {
        let token = Access.makeToken()
        let descriptor = path.withCString {
            open($0, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode_t(0o600))
        }
        guard descriptor >= 0 else { throw failure("create", path, errno) }
        defer { close(descriptor) }
        let line = Array("\(token)\n".utf8)
        // Without the flush, a power failure could leave an empty file without a token.
        guard write(descriptor, line, line.count) == line.count, fsync(descriptor) == 0 else {
            let error = errno
            _ = path.withCString { unlink($0) }
            throw failure("write", path, error)
        }
        return token
    }
}

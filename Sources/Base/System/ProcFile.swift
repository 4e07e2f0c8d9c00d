import Glibc

/// Reads files to their end: those of proc(5) have no size, and others may grow meanwhile.
package enum ProcFile {
    /// Returns the content of a file; nil if it can't be read.
    package static func bytes(of path: String) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        return bytes(of: descriptor)
    }

    /// Returns the content of an open file from its current position, see errno(3) if it can't be read.
    ///
    /// It ends early, but not before the limit is exceeded.
    package static func bytes(of descriptor: Int32, limit: Int = .max) -> [UInt8]? {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        while bytes.count <= limit {
            let count = read(descriptor, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return count < 0 ? nil : bytes }
            bytes += piece[..<count]
        }
        return bytes
    }

    /// Returns the name of a process's program, see proc_pid_comm(5); empty if there is no such process.
    package static func name(of process: some CustomStringConvertible) -> String {
        String(decoding: (bytes(of: "/proc/\(process)/comm") ?? []).prefix { $0 != 0x0A }, as: UTF8.self)
    }

    /// Returns the content of a file as a string; empty if it can't be read.
    package static func text(of path: String) -> String { String(decoding: bytes(of: path) ?? [], as: UTF8.self) }
}

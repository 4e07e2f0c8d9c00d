import FileEvents
import Glibc
import Settling

/// A file that is written as a whole or not at all.
enum WholeFile {
    /// Puts a new file in the place of the old one; its facts.
    ///
    /// - Parameters:
    ///   - path: In a folder that is there.
    ///   - bytes: The content.
    ///   - isFlushed: Whether it has to outlast a loss of power.
    @discardableResult
    static func replace(_ path: PathBytes, with bytes: [UInt8], isFlushed: Bool = true) throws(FileFault) -> Snapshot {
        let temporary = FileCopy.temporaryName(beside: path)
        let descriptor = temporary.withCString { open($0, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o666) }
        guard descriptor >= 0 else { throw FileFault(errno, "cannot create '\(temporary)'") }
        defer { close(descriptor) }
        do throws(FileFault) {
            // Who could read the old one can read the new one.
            if case .present(let old) = DiskProbe.look(at: path), old.type == .file {
                fchmod(descriptor, mode_t(old.mode & 0o777))
            }
            try write(bytes, descriptor, temporary)
            if isFlushed, fsync(descriptor) != 0 { throw FileFault(errno, "cannot flush '\(temporary)'") }
            guard case .present(let snapshot) = DiskProbe.look(at: temporary) else {
                throw FileFault(ENOENT, "cannot rename to '\(path)': '\(temporary)' was taken away")
            }
            guard temporary.withCString({ from in path.withCString { rename(from, $0) } }) == 0 else {
                throw FileFault(errno, "cannot rename to '\(path)'")
            }
            if isFlushed { Destination(path: path, conflict: .overwrite).syncFolder() }
            return snapshot
        } catch {
            temporary.withCString { _ = unlink($0) }
            throw error
        }
    }

    private static func write(_ bytes: [UInt8], _ descriptor: Int32, _ path: PathBytes) throws(FileFault) {
        var written = 0
        while written < bytes.count {
            let step = bytes.withUnsafeBytes {
                Glibc.write(descriptor, $0.baseAddress.map { $0 + written }, bytes.count - written)
            }
            if step < 0, errno == EINTR { continue }
            guard step > 0 else { throw FileFault(errno, "cannot write to '\(path)'") }
            written += step
        }
    }
}

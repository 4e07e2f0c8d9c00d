import Glibc
import PluginProtocol

/// Files by the exact bytes of their names.
final class SystemFile {
    private let descriptor: Int32
    let size: Int

    /// Opens a file for reading; a link is not followed, because its target may have changed.
    init(reading path: [UInt8]) throws {
        descriptor = open(Self.string(path), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            switch errno {
            case ENOENT, ENOTDIR: throw PluginFailure.skipped("it is gone", code: "gone")
            case ELOOP, ENXIO: throw PluginFailure.skipped("it is not a regular file", code: "not-a-file")
            case EACCES, EPERM:
                // access(2) does not consult a sandbox, whose limits are not temporary.
                let isOfMode = access(Self.string(path), R_OK) != 0
                if isOfMode { throw PluginFailure.retry("cannot read it: permission denied", code: "denied") }
                throw PluginFailure.failed("cannot read it: permission denied", code: "unusable")
            default: throw Self.failure("cannot read it")
            }
        }
        var status = stat()
        let isKnown = fstat(descriptor, &status) == 0
        size = Int(status.st_size)
        guard isKnown, status.st_mode & S_IFMT == S_IFREG else {
            throw PluginFailure.skipped("it is not a regular file", code: "not-a-file")
        }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// The next block; nil at the end.
    func next() throws -> [UInt8]? {
        var count = 0
        let block = [UInt8](unsafeUninitializedCapacity: 256 << 10) { buffer, size in
            repeat { count = read(descriptor, buffer.baseAddress, buffer.count) } while count < 0 && errno == EINTR
            size = max(count, 0)
        }
        guard count >= 0 else { throw Self.failure("cannot read it") }
        return count > 0 ? block : nil
    }

    /// All of a small file; nil when there is none.
    static func content(of path: [UInt8]) throws -> [UInt8]? {
        guard access(string(path), F_OK) == 0 else { return nil }
        let file = try SystemFile(reading: path)
        var content: [UInt8] = []
        while content.count < 1 << 20, let block = try file.next() { content += block }
        return content
    }

    /// Writes a file that appears only when it is complete.
    ///
    /// The temporary name contains the job's id, so that a later attempt removes the file of a killed one.
    static func write(_ bytes: [UInt8], to path: [UInt8], job: String) throws {
        let directory = path[...(path.lastIndex(of: UInt8(ascii: "/")) ?? path.startIndex)]
        let temporary = string(directory + Array(".alight-checksum-\(job.filter { $0 != "/" }).tmp".utf8))
        unlink(temporary)
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o666)
        guard descriptor >= 0 else { throw failure("cannot write the checksum") }
        defer {
            close(descriptor)
            unlink(temporary)
        }
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw failure("cannot write the checksum") }
            rest = rest.dropFirst(count)
        }
        guard fsync(descriptor) == 0, rename(temporary, string(path)) == 0 else {
            throw failure("cannot write the checksum")
        }
    }

    /// Returns the failure for the last system error; temporary ones are retried.
    private static func failure(_ problem: String) -> PluginFailure {
        let error = errno
        let message = "\(problem): \(String(cString: strerror(error)))"
        let temporary = [ENOSPC, EDQUOT, EIO, EROFS, ENODEV, ESTALE, EAGAIN, EBUSY, EMFILE, ENFILE, ENOMEM, ETIMEDOUT]
        return temporary.contains(error) ? .retry(message, code: "disk") : .failed(message, code: "unusable")
    }

    private static func string(_ path: [UInt8]) -> [CChar] { path.map { CChar(bitPattern: $0) } + [0] }
}

import FileEvents
import Glibc

/// The right to be the one Alight that a journal has, for as long as the object lives.
///
/// It is a lock by flock(2) on a file beside the journal, which holds the number
/// of the process. The file stays when the lock goes: nobody has to clean up after
/// a process that was killed.
final class JournalLock: Sendable {
    private let descriptor: Int32

    /// Takes the lock, or says who has it.
    init(of journal: PathBytes) throws(JournalError) {
        let path = Self.path(of: journal)
        let descriptor = path.withCString { open($0, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600) }
        guard descriptor >= 0 else { throw .noAccess(path, errno: errno) }
        guard Self.take(descriptor) else {
            let reason = errno
            let pid = Self.pid(in: descriptor)
            close(descriptor)
            throw reason == EWOULDBLOCK ? .held(journal, pid: pid) : .noAccess(path, errno: reason)
        }
        let text = Array("\(getpid())\n".utf8)
        guard ftruncate(descriptor, 0) == 0, pwrite(descriptor, text, text.count, 0) == text.count else {
            let reason = errno
            close(descriptor)
            throw reason == ENOSPC || reason == EDQUOT ? .full(journal) : .noAccess(path, errno: reason)
        }
        self.descriptor = descriptor
    }

    deinit {
        // A program that is being started has a copy of the descriptor until it has become itself.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }

    /// Takes the lock; so that such a copy of a process which was killed is no obstacle, within a fifth of a second.
    private static func take(_ descriptor: Int32) -> Bool {
        for _ in 0..<20 {
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
            guard errno == EWOULDBLOCK else { return false }
            usleep(10_000)
        }
        return flock(descriptor, LOCK_EX | LOCK_NB) == 0
    }

    static func path(of journal: PathBytes) -> PathBytes { PathBytes(journal.bytes + Array("-lock".utf8)) }

    /// The number that the holder wrote.
    private static func pid(in descriptor: Int32) -> Int32? {
        var buffer = [UInt8](repeating: 0, count: 16)
        let count = pread(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { return nil }
        return Int32(String(decoding: buffer[..<count].prefix { $0 != 0x0a }, as: UTF8.self))
    }
}

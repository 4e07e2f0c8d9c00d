import FileEvents
import Glibc
import Synchronization
import System

/// The right to be the one Alight that a journal has, for as long as the object lives.
///
/// It is a lock by flock(2) on a file beside the journal, which holds the number
/// of the process, and in the next line its control socket. The file stays when the lock goes: nobody has to clean up after
/// a process that was killed. The journal's own file is locked as well, so that it is had
/// once also under another name, or after the file beside it was removed.
final class JournalLock: Sendable {
    private let descriptor: Int32
    /// The journal's file.
    ///
    /// To close it ends the locks that SQLite has on it: this object outlives the connection.
    private let file = Atomic<Int32>(-1)

    /// What stands behind the number of a process that has the lock for a moment only.
    private static let brief = " brief"
    /// How long such a process is waited for.
    private static let patience = Duration.seconds(5)
    /// How long all others are: a copy of the descriptor that a killed process has left behind is no obstacle.
    private static let shortPatience = Duration.milliseconds(200)

    /// Takes the lock, or says who has it.
    ///
    /// - Parameters:
    ///   - journal: The journal's file.
    ///   - isBrief: Whether it will be free again at once, so that others wait for that.
    /// - Throws: When it is taken, or its file can't be written.
    init(of journal: PathBytes, isBrief: Bool = false) throws(JournalError) {
        let path = CompanionFile.lock.path(of: journal)
        let descriptor = path.withCString { open($0, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600) }
        guard descriptor >= 0 else { throw .noAccess(path, errno: errno) }
        guard Self.take(descriptor) else {
            let reason = errno
            let pid = Self.pid(in: descriptor)
            close(descriptor)
            throw reason == EWOULDBLOCK ? .held(journal, pid: pid) : .noAccess(path, errno: reason)
        }
        let text = Array("\(getpid())\(isBrief ? Self.brief : "")\n".utf8)
        guard ftruncate(descriptor, 0) == 0, pwrite(descriptor, text, text.count, 0) == text.count else {
            let reason = errno
            close(descriptor)
            throw reason == ENOSPC || reason == EDQUOT ? .full(journal) : .noAccess(path, errno: reason)
        }
        self.descriptor = descriptor
    }

    /// Names the control socket of this process behind its number, or none any more.
    func note(control socket: PathBytes?) {
        let text = Array("\(getpid())\n".utf8) + (socket.map { $0.bytes + [0x0a] } ?? [])
        // On a full disk nobody finds it, and is told that there is none.
        _ = pwrite(descriptor, text, text.count, 0)
        ftruncate(descriptor, off_t(text.count))
    }

    /// Locks the journal's own file, which is there by now.
    ///
    /// - Throws: When it is taken, under another name, or can't be opened.
    func lockFile(of journal: PathBytes) throws(JournalError) {
        let descriptor = journal.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
        guard descriptor >= 0 else { throw .noAccess(journal, errno: errno) }
        guard Self.take(descriptor) else {
            let reason = errno
            close(descriptor)
            throw reason == EWOULDBLOCK ? .held(journal, pid: nil) : .noAccess(journal, errno: reason)
        }
        file.store(descriptor, ordering: .relaxed)
    }

    deinit {
        let file = file.load(ordering: .relaxed)
        if file >= 0 {
            flock(file, LOCK_UN)
            close(file)
        }
        // A program that is being started has a copy of the descriptor until it has become itself.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }

    /// Takes the lock; false, with the reason in errno, when nobody lets it go in time.
    private static func take(_ descriptor: Int32) -> Bool {
        let start = ContinuousClock.now
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK else { return false }
            let isBrief = line(in: descriptor)?.hasSuffix(brief) ?? false
            guard ContinuousClock.now < start + (isBrief ? patience : shortPatience) else {
                errno = EWOULDBLOCK
                return false
            }
            usleep(10_000)
        }
        return true
    }

    /// The process that has the lock: 0 if its number can't be read, nil if nobody has it.
    ///
    /// A lock that is shared is held for that moment, and whoever comes then waits for it.
    static func holder(of journal: PathBytes) -> Int32? {
        let descriptor = CompanionFile.lock.path(of: journal).withCString {
            open($0, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        }
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        guard flock(descriptor, LOCK_SH | LOCK_NB) != 0 else {
            flock(descriptor, LOCK_UN)
            return nil
        }
        return errno == EWOULDBLOCK ? pid(in: descriptor) ?? 0 : nil
    }

    /// The control socket that the holder has named; nil when it has none.
    static func control(of journal: PathBytes) -> PathBytes? {
        guard holder(of: journal) != nil else { return nil }
        let descriptor = CompanionFile.lock.path(of: journal).withCString {
            open($0, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        }
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: 64 + Int(PATH_MAX))
        let count = pread(descriptor, &buffer, buffer.count, 0)
        let lines = buffer.prefix(max(0, count)).split(separator: 0x0a, maxSplits: 1)
        guard lines.count == 2, lines[1].last == 0x0a else { return nil }
        return PathBytes(lines[1].dropLast())
    }

    /// The number that the holder wrote.
    private static func pid(in descriptor: Int32) -> Int32? {
        line(in: descriptor).flatMap { Int32($0.prefix { $0 != " " }) }
    }

    /// What the holder wrote.
    private static func line(in descriptor: Int32) -> String? {
        var buffer = [UInt8](repeating: 0, count: 32)
        let count = pread(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { return nil }
        return String(decoding: buffer[..<count].prefix { $0 != 0x0a }, as: UTF8.self)
    }
}

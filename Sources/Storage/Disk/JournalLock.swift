import Glibc
import Synchronization
import System

/// The lock by which one instance at a time uses a journal, for the lifetime of the object.
///
/// It is a flock(2) lock on a file next to the journal. That file contains the process id and, on the next line, the
/// control socket. It remains when the lock is released, so nothing has to be cleaned up after a process was killed.
/// The journal's own file is also locked, so that the journal can't be opened twice under another name, or after the
/// lock file was removed.
final class JournalLock: Sendable {
    private let descriptor: Int32
    /// The journal's file.
    ///
    /// Closing it releases the locks that SQLite has on it, so this object outlives the connection.
    private let file = Atomic<Int32>(-1)

    /// The suffix after the process id if the process uses the lock only briefly.
    private static let brief = " brief"
    /// The timeout for such a process.
    private static let timeout = Duration.seconds(5)
    /// The timeout for all others; it tolerates a copy of the descriptor left by a killed process.
    private static let shortTimeout = Duration.milliseconds(200)

    /// Acquires the lock, or throws an error with its holder.
    ///
    /// - Parameters:
    ///   - journal: The journal's file.
    ///   - isBrief: Whether it is released soon, so that other processes wait for it.
    /// - Throws: An error if the lock is held, or if its file can't be written.
    init(of journal: PathBytes, isBrief: Bool = false) throws(JournalError) {
        let path = CompanionFile.lock.path(of: journal)
        let descriptor = path.withCString { open($0, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600) }
        try Self.acquire(descriptor, of: path, journal)
        let text = Array("\(getpid())\(isBrief ? Self.brief : "")\n".utf8)
        guard ftruncate(descriptor, 0) == 0, pwrite(descriptor, text, text.count, 0) == text.count else {
            let reason = errno
            close(descriptor)
            throw reason == ENOSPC || reason == EDQUOT ? .full(journal) : .noAccess(path, errno: reason)
        }
        self.descriptor = descriptor
    }

    /// Records the control socket of this process after its process id; nil for none.
    func record(control socket: PathBytes?) {
        let text = Array("\(getpid())\n".utf8) + (socket.map { $0.bytes + [0x0a] } ?? [])
        // On a full disk, other processes do not find the socket and report that there is none.
        _ = pwrite(descriptor, text, text.count, 0)
        ftruncate(descriptor, off_t(text.count))
    }

    /// Locks the journal's own file, which must exist.
    ///
    /// - Throws: An error if it is locked under another name, or can't be opened.
    func lockFile(of journal: PathBytes) throws(JournalError) {
        let descriptor = journal.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
        try Self.acquire(descriptor, of: journal, journal)
        file.store(descriptor, ordering: .relaxed)
    }

    deinit {
        let file = file.load(ordering: .relaxed)
        if file >= 0 {
            flock(file, LOCK_UN)
            close(file)
        }
        // A program that is being started has a copy of the descriptor until its exec(2).
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }

    /// Acquires the lock of a file; closes it and throws an error if it was not opened, or is not released in time.
    private static func acquire(_ descriptor: Int32, of path: PathBytes, _ journal: PathBytes) throws(JournalError) {
        guard descriptor >= 0 else { throw .noAccess(path, errno: errno) }
        let start = ContinuousClock.now
        let error = FileLock.acquire(descriptor) {
            let isBrief = line(in: descriptor).hasSuffix(brief)
            return .now < start + (isBrief ? timeout : shortTimeout)
        }
        guard error != 0 else { return }
        let pid = pid(in: descriptor)
        close(descriptor)
        throw error == EWOULDBLOCK ? .held(journal, pid: pid) : .noAccess(path, errno: error)
    }

    /// Returns the result of the closure for the lock file of a journal; nil if there is none.
    private static func read<Result>(_ journal: PathBytes, _ body: (Int32) -> Result?) -> Result? {
        let descriptor = CompanionFile.lock.path(of: journal).withCString {
            open($0, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        }
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        return body(descriptor)
    }

    /// Returns the process that holds the lock; 0 if its id can't be read, nil if there is none.
    ///
    /// The check briefly takes a shared lock; a process that acquires the lock during that time waits for it.
    static func holder(of journal: PathBytes) -> Int32? {
        read(journal) { descriptor in
            guard flock(descriptor, LOCK_SH | LOCK_NB) != 0 else {
                flock(descriptor, LOCK_UN)
                return nil
            }
            return errno == EWOULDBLOCK ? pid(in: descriptor) ?? 0 : nil
        }
    }

    /// Returns the control socket that the holder has recorded; nil if there is none.
    static func control(of journal: PathBytes) -> PathBytes? {
        guard holder(of: journal) != nil else { return nil }
        return read(journal) { descriptor in
            let lines = content(of: descriptor).split(separator: 0x0a, maxSplits: 1)
            guard lines.count == 2, lines[1].last == 0x0a else { return nil }
            return PathBytes(lines[1].dropLast())
        }
    }

    /// Returns the process id that the holder wrote; nil for a journal's own file, which begins with other text.
    private static func pid(in descriptor: Int32) -> Int32? { Int32(line(in: descriptor).prefix { $0 != " " }) }

    /// Returns the first line that the holder wrote.
    private static func line(in descriptor: Int32) -> String {
        String(decoding: content(of: descriptor).prefix { $0 != 0x0a }, as: UTF8.self)
    }

    private static func content(of descriptor: Int32) -> ArraySlice<UInt8> {
        var buffer = [UInt8](repeating: 0, count: 64 + Int(PATH_MAX))
        let count = pread(descriptor, &buffer, buffer.count, 0)
        return buffer.prefix(max(0, count))
    }
}

import Glibc

/// Keeps the files that tests write apart from the programs that they start.
///
/// A program has a copy of every descriptor from its fork to its execve(2). If one
/// of them is open for writing, its file has a writer longer than the test thinks.
enum Descriptors {
    /// pthread's own, since many may write at once; never moved.
    private nonisolated(unsafe) static let lock: UnsafeMutablePointer<pthread_rwlock_t> = {
        let lock = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)
        pthread_rwlock_init(lock, nil)
        return lock
    }()

    /// Calls what opens a file for writing, and closes it again.
    static func write(_ body: () -> Void) {
        pthread_rwlock_rdlock(lock)
        defer { pthread_rwlock_unlock(lock) }
        body()
    }

    /// Calls what starts a program, and returns when that has become itself.
    static func whileNoneIsWritten<Result>(_ body: () -> Result) -> Result {
        pthread_rwlock_wrlock(lock)
        defer { pthread_rwlock_unlock(lock) }
        return body()
    }
}

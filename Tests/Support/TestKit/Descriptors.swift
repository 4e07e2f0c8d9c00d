import Glibc

/// Prevents programs from inheriting descriptors of files that tests are writing.
///
/// Between fork and execve(2), a child process has a copy of every descriptor. If one
/// of them is open for writing, its file has a writer for longer than the test expects.
enum Descriptors {
    /// A read-write lock, because several threads may write at once.
    ///
    /// Allocated once, because it must not move.
    private nonisolated(unsafe) static let lock: UnsafeMutablePointer<pthread_rwlock_t> = {
        let lock = UnsafeMutablePointer<pthread_rwlock_t>.allocate(capacity: 1)
        pthread_rwlock_init(lock, nil)
        return lock
    }()

    /// Calls a closure that opens a file for writing and closes it again.
    static func write(_ body: () -> Void) {
        pthread_rwlock_rdlock(lock)
        defer { pthread_rwlock_unlock(lock) }
        body()
    }

    /// Calls a closure that starts a program and returns after its execve(2).
    static func whileNoneIsWritten<Result>(_ body: () -> Result) -> Result {
        pthread_rwlock_wrlock(lock)
        defer { pthread_rwlock_unlock(lock) }
        return body()
    }
}

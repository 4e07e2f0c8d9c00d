import Glibc

/// Exclusive locks of flock(2).
package enum FileLock {
    /// Locks an open file, and waits as long as another process holds the lock.
    ///
    /// - Parameters:
    ///   - descriptor: The file.
    ///   - pause: The time between two attempts, in microseconds.
    ///   - mayWait: Whether to wait once more.
    /// - Returns: 0 or the errno: EWOULDBLOCK if another process still holds the lock.
    package static func acquire(_ descriptor: Int32, pause: UInt32 = 10_000, while mayWait: () -> Bool) -> Int32 {
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            let error = errno
            guard error == EWOULDBLOCK || error == EINTR else { return error }
            guard mayWait() else { return EWOULDBLOCK }
            usleep(pause)
        }
        return 0
    }
}

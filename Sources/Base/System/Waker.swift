import CAlightLinux
import Glibc

/// Wakes a thread that sleeps in poll(2).
package final class Waker: Sendable {
    /// Becomes readable on a wake, until ``clear()``.
    package let descriptor: Int32

    /// - Throws: An error if no descriptor is available.
    package init() throws(SystemError) {
        descriptor = cal_eventfd()
        guard descriptor >= 0 else { throw SystemError(errno: -descriptor) }
    }

    deinit { close(descriptor) }

    package func wake() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    package func clear() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, 8)
    }
}

import CAlightLinux
import Glibc

/// Wakes a thread that sleeps in poll(2).
final class Waker: Sendable {
    /// Becomes readable when somebody wakes, until ``clear()``.
    let descriptor: Int32

    /// Nil when descriptors have run out.
    init?() {
        descriptor = cal_eventfd()
        if descriptor < 0 { return nil }
    }

    deinit { close(descriptor) }

    func wake() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    func clear() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, 8)
    }
}

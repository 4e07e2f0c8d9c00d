import CAlightLinux
import Glibc
import Synchronization

/// A primitive that lets one thread sleep until another wakes it, or until a deadline.
///
/// It is a counter that poll(2) waits for. Unlike the timeout of a semaphore, its timeout does not depend on a clock
/// that can be set.
package final class Wake: Sendable {
    private let descriptor: Int32
    /// Locked while the descriptor is written to, so that it is not closed meanwhile; nil when it is closed.
    private let waker: Mutex<Waker?>
    /// Whether the counter was incremented, or is about to be, since the sleeper last checked.
    private let isSignalled = Atomic(false)

    /// Opens the counter.
    ///
    /// - Throws: An error if no descriptor is available.
    package init() throws(SystemError) {
        let waker = try Waker()
        descriptor = waker.descriptor
        self.waker = Mutex(waker)
    }

    /// Wakes the sleeper.
    ///
    /// Several calls before it checks count as one.
    package func signal() {
        guard !isSignalled.exchange(true, ordering: .acquiringAndReleasing) else { return }
        waker.withLock { $0?.wake() }
    }

    /// Sleeps until woken, or until the deadline; nil means no deadline.
    ///
    /// Only one thread may call this. A signal before the call makes it return at once.
    package func wait(until deadline: ContinuousClock.Instant?) {
        var waited = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        _ = cal_poll(&waited, 1, deadline.pollLimit)
        // Takes no lock: the signaling thread may still hold it, and this thread would wait for it.
        if waited.revents != 0 {
            var count: UInt64 = 0
            _ = read(descriptor, &count, 8)
        }
        // Reset after the read, so that a signal from now on increments the counter again. The sleeper sees the changes
        // of an earlier signal, because it checks after this.
        _ = isSignalled.exchange(false, ordering: .acquiringAndReleasing)
    }

    /// Closes the descriptor; later signals have no effect.
    ///
    /// Call this on the sleeping thread, or when no thread sleeps any more.
    package func close() { waker.withLock { $0 = nil } }
}

/// A request to another thread whose caller waits for the answer.
package final class Request<Answer: Sendable>: Sendable {
    private let answer = Mutex<Answer?>(nil)
    private let done: Wake

    package init() throws(SystemError) { done = try Wake() }

    package func end(_ answer: Answer) {
        self.answer.withLock { $0 = answer }
        done.signal()
    }

    /// Returns the answer; nil if there is none by the deadline.
    @discardableResult
    package func wait(until deadline: ContinuousClock.Instant) -> Answer? {
        done.wait(until: deadline)
        return answer.withLock { $0 }
    }
}

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

import CAlightLinux
import Glibc
import Synchronization

/// A primitive that lets one thread sleep until another wakes it, or until a deadline.
///
/// Unlike the timeout of a semaphore, its timeout does not depend on a clock that can be set.
package final class Wake: @unchecked Sendable {
    // All threads access it, by atomic operations of C only; it never changes place.
    private let word = UnsafeMutablePointer<UInt32>.allocate(capacity: 1)

    package init() { word.initialize(to: 0) }

    deinit { word.deallocate() }

    /// Wakes the sleeper.
    ///
    /// Several calls before it checks count as one.
    package func signal() { cal_signal(word) }

    /// Sleeps until woken, or until the deadline; nil means no deadline.
    ///
    /// Only one thread may call this. A signal before the call makes it return at once.
    package func wait(until deadline: ContinuousClock.Instant?) { cal_sleep(word, deadline.pollLimit) }
}

/// A request to another thread for whose answer one thread waits.
package final class Request<Answer: Sendable>: Sendable {
    private let answer = Mutex<Answer?>(nil)
    private let done = Wake()

    package init() {}

    package func end(_ answer: Answer) {
        self.answer.withLock { $0 = answer }
        done.signal()
    }

    /// Returns the answer; nil if there is none by the deadline.
    ///
    /// Without a deadline, it waits until there is an answer.
    @discardableResult
    package func wait(until deadline: ContinuousClock.Instant? = nil) -> Answer? {
        while true {
            let answer = answer.withLock { $0 }
            if answer != nil || deadline.map({ $0 <= .now }) ?? false { return answer }
            done.wait(until: deadline)
        }
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

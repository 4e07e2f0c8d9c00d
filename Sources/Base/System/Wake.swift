import CAlightLinux
import Glibc
import Synchronization

/// How one thread sleeps until another wakes it, or until a deadline.
///
/// A counter that poll(2) waits for: unlike a semaphore's, its time-out does not
/// follow a clock that is set.
package final class Wake: Sendable {
    private let descriptor: Int32
    /// Held while the descriptor is written to, so that nobody closes it meanwhile; nil when it is closed.
    private let waker: Mutex<Waker?>
    /// Whether the counter has been counted up, or is about to be, since the sleeper looked.
    private let isSignalled = Atomic(false)

    /// Opens the counter.
    ///
    /// - Throws: When there is no descriptor to be had.
    package init() throws(SystemError) {
        let waker = try Waker()
        descriptor = waker.descriptor
        self.waker = Mutex(waker)
    }

    /// Ends the sleep; many calls before the sleeper looks are one.
    package func signal() {
        guard !isSignalled.exchange(true, ordering: .acquiringAndReleasing) else { return }
        waker.withLock { $0?.wake() }
    }

    /// Sleeps until woken or until the deadline, nil for none.
    ///
    /// For one thread. What was signalled before the call ends it at once.
    package func wait(until deadline: ContinuousClock.Instant?) {
        var rest: Int64 = -1
        if let deadline {
            let (seconds, attoseconds) = ContinuousClock.now.duration(to: deadline).components
            rest = max(0, min(seconds, 1 << 30) * 1_000_000_000 + attoseconds / 1_000_000_000)
        }
        var waited = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        _ = cal_poll(&waited, 1, rest)
        // No lock: whoever signals may still hold it, and would be waited for.
        if waited.revents != 0 {
            var count: UInt64 = 0
            _ = read(descriptor, &count, 8)
        }
        // After the read, so that a signal that comes now counts up again; what one that came before is about is there
        // for the sleeper to see, who looks after this.
        _ = isSignalled.exchange(false, ordering: .acquiringAndReleasing)
    }

    /// Gives the descriptor back; later signals do nothing.
    ///
    /// Only the thread that sleeps may call it, or nobody does any more.
    package func close() { waker.withLock { $0 = nil } }
}

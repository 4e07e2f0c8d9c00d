import CAlightLinux
import FileEvents
import Glibc
import Synchronization

/// How one thread sleeps until another wakes it, or until a deadline.
///
/// A counter that poll(2) waits for: unlike a semaphore's, its time-out does not
/// follow a clock that is set.
package final class Wake: Sendable {
    private struct State {
        var descriptor: Int32
        var isSignalled = false
    }

    private let state: Mutex<State>

    /// Opens the counter.
    ///
    /// - Throws: When there is no descriptor to be had.
    package init() throws(WatchError) {
        let descriptor = cal_eventfd()
        guard descriptor >= 0 else { throw .refused("eventfd", errno: -descriptor) }
        state = Mutex(State(descriptor: descriptor))
    }

    deinit { close() }

    /// Ends the sleep; many calls before the sleeper looks are one.
    package func signal() {
        state.withLock { state in
            guard !state.isSignalled, state.descriptor >= 0 else { return }
            state.isSignalled = true
            var one: UInt64 = 1
            _ = write(state.descriptor, &one, 8)
        }
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
        let descriptor = state.withLock { $0.descriptor }
        guard descriptor >= 0 else { return }
        var waited = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        _ = cal_poll(&waited, 1, rest)
        state.withLock { state in
            guard state.isSignalled else { return }
            state.isSignalled = false
            var count: UInt64 = 0
            _ = read(state.descriptor, &count, 8)
        }
    }

    /// Gives the descriptor back; later signals do nothing.
    ///
    /// Only the thread that sleeps may call it, or nobody does any more.
    package func close() {
        state.withLock { state in
            if state.descriptor >= 0 { Glibc.close(state.descriptor) }
            state.descriptor = -1
        }
    }
}

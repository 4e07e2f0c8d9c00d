import CAlightLinux
import Glibc
import Rules
import Synchronization

/// What other threads send to the engine's thread, and how it sleeps.
final class Mailbox: Sendable {
    enum Message: Sendable {
        case ended(Attempt.Result)
        case stop
        case stopAtOnce
        case rescan
    }

    private struct State {
        var messages: [Message] = []
        var isSignalled = false
    }

    private let state = Mutex(State())
    /// A counter that poll(2) waits for: unlike a semaphore's, its time-out does not follow a clock that is set.
    private let descriptor: Int32

    init() {
        descriptor = cal_eventfd()
        precondition(descriptor >= 0, "the engine is made before anything that could use up descriptors")
    }

    deinit { close(descriptor) }

    func post(_ message: Message) {
        state.withLock { $0.messages.append(message) }
        wake()
    }

    /// Ends the engine's sleep; many calls before it looks are one.
    func wake() {
        let isFirst = state.withLock { state in
            defer { state.isSignalled = true }
            return !state.isSignalled
        }
        guard isFirst else { return }
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    /// Sleeps until woken or until the deadline, nil for none, and removes all messages.
    func take(until deadline: ContinuousClock.Instant?) -> [Message] {
        var wait: Int64 = -1
        if let deadline {
            let (seconds, attoseconds) = ContinuousClock.now.duration(to: deadline).components
            wait = max(0, min(seconds, 1 << 30) * 1_000_000_000 + attoseconds / 1_000_000_000)
        }
        var waited = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        if cal_poll(&waited, 1, wait) > 0 {
            var count: UInt64 = 0
            _ = read(descriptor, &count, 8)
        }
        return state.withLock { state in
            defer {
                state.messages = []
                state.isSignalled = false
            }
            return state.messages
        }
    }
}

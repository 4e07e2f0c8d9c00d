@preconcurrency import Dispatch
import FileWatching
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
    private let semaphore = DispatchSemaphore(value: 0)

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
        if isFirst { semaphore.signal() }
    }

    /// Sleeps until woken or until the deadline, nil for none, and removes all messages.
    func take(until deadline: ContinuousClock.Instant?) -> [Message] {
        if let deadline {
            let (seconds, attoseconds) = ContinuousClock.now.duration(to: deadline).components
            let nanoseconds = seconds.multipliedReportingOverflow(by: 1_000_000_000)
            let wait = nanoseconds.overflow ? Int64.max : nanoseconds.partialValue + attoseconds / 1_000_000_000
            _ = semaphore.wait(timeout: .now() + .nanoseconds(Int(max(0, wait))))
        } else {
            semaphore.wait()
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

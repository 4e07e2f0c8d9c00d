import FileWatching
import Rules
import Synchronization

/// What other threads send to the engine's thread, and how it sleeps.
final class Mailbox: Sendable {
    enum Message: Sendable {
        case ended(Attempt.Result)
        /// Steps of a job have succeeded, and others follow.
        case advanced(JobID, [Outcome])
        case stop
        case stopAtOnce
        case rescan
        case requests
    }

    private let messages = Mutex<[Message]>([])
    private let sleep: Wake

    init() {
        do {
            sleep = try Wake()
        } catch {
            preconditionFailure("the engine is made before anything that could use up descriptors")
        }
    }

    func post(_ message: Message) {
        messages.withLock { $0.append(message) }
        wake()
    }

    /// Ends the engine's sleep; many calls before it looks are one.
    func wake() { sleep.signal() }

    /// Sleeps until woken or until the deadline, nil for none, and removes all messages.
    func take(until deadline: ContinuousClock.Instant?) -> [Message] {
        sleep.wait(until: deadline)
        return messages.withLock { messages in
            defer { messages = [] }
            return messages
        }
    }
}

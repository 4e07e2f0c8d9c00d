import FileEvents
package import Rules
import Synchronization
package import System

/// What other threads send to the engine's thread, and how it sleeps.
package final class Mailbox<Ended: Sendable>: Sendable {
    package enum Message: Sendable {
        case ended(Ended)
        /// Steps of a job have succeeded, and others follow.
        case advanced(JobID, [FinishedStep], Set<PathBytes>)
        /// The running step of a job is about to write a path.
        case declared(JobID, PathBytes)
        case stop
        case stopAtOnce
        case rescan
        /// What a person asks for jobs; the closure is called when it is kept.
        case command(JobCommand, @Sendable () -> Void)
        case reload(Ruleset, ignored: [PathBytes])
        /// A rule is to rest or to go on; all of them with nil.
        case pause(String?)
        case resume(String?)
    }

    private struct State {
        var messages: [Message] = []
        /// How many attempts have ended among the messages.
        var ended = 0
        /// So many of them end the sleep.
        var wanted = 1
        /// Whether fewer came the last time, or all that were wanted.
        var wasShort = false
        var wasFull = false

        mutating func add(_ message: Message) -> Bool {
            messages.append(message)
            switch message {
            case .ended:
                ended += 1
                return ended >= wanted
            case .advanced: return wanted == 1
            // What it writes is hinted, which wakes the reader.
            case .declared: return false
            case .stop, .stopAtOnce, .rescan, .command, .reload, .pause, .resume: return true
            }
        }
    }

    /// How long attempts that are begun together are waited for, so that one commit does for all of them.
    ///
    /// Several times what an action takes that does next to nothing; programs take longer, and end one by one.
    private static var moment: Duration { .microseconds(200) }

    private let state = Mutex(State())
    private let sleep: Wake

    package init() {
        do {
            sleep = try Wake()
        } catch {
            preconditionFailure("the engine is made before anything that could use up descriptors")
        }
    }

    package func post(_ message: Message) {
        if state.withLock({ $0.add(message) }) { wake() }
    }

    /// Lets the next sleep go on until all attempts that run have ended, or for a moment.
    ///
    /// Called before they are begun. If that was in vain the last time, no more are waited for than are begun now.
    ///
    /// - Returns: Whether all had ended in time then, so that these may be as quick.
    package func gather(begun: Int, running: Int) -> Bool {
        state.withLock { state in
            state.wanted = max(1, state.wasShort ? begun : running)
            return state.wasFull && begun > 1
        }
    }

    /// Ends the engine's sleep; many calls before it looks are one.
    package func wake() { sleep.signal() }

    /// Sleeps until woken or until the deadline, nil for none.
    package func wait(until deadline: ContinuousClock.Instant?) {
        var end = deadline
        if state.withLock({ $0.wanted > 1 }) {
            let moment = ContinuousClock.now + Self.moment
            end = min(deadline ?? moment, moment)
        }
        sleep.wait(until: end)
    }

    /// Removes all messages.
    package func take() -> [Message] {
        state.withLock { state in
            let messages = state.messages
            let isGathering = state.wanted > 1
            let isShort = state.ended < state.wanted
            state = State(wasShort: isGathering && isShort, wasFull: isGathering && !isShort)
            return messages
        }
    }
}

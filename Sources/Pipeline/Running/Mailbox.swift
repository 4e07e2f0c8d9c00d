import Jobs
package import Rules
import Synchronization
package import System

/// The messages of other threads to the engine's thread, and its sleep.
package final class Mailbox: Sendable {
    package enum Message: Sendable {
        /// The last attempt of a series has ended, or one that did not succeed.
        case ended(AttemptSeries)
        /// A step of a job has succeeded, and another one follows: all finished steps, and the outputs of the last one
        /// under each name by which the rule matches them.
        case advanced(JobID, [FinishedStep], Set<PathBytes>)
        /// The running step of a job is about to write a path that the rule matches.
        case declared(JobID, PathBytes)
        case stop
        case stopAtOnce
        case rescan
        /// A user's request for jobs; the closure is called when it is stored.
        case command(JobCommand, @Sendable () -> Void)
        case reload(Ruleset, ignored: [PathBytes])
        /// Pauses a rule; all of them with nil.
        case pause(String?)
        case resume(String?)
    }

    private struct State {
        var messages: [Message] = []
        /// The number of finished series among the messages.
        var ended = 0
        /// The number of finished series that end the sleep.
        var wanted = 1
        /// Whether all of them finished in time the last time; nil if they were not waited for.
        var wasFull: Bool?

        mutating func add(_ message: Message) -> Bool {
            messages.append(message)
            switch message {
            case .ended:
                ended += 1
                return ended >= wanted
            case .advanced: return wanted == 1
            // The write itself causes a hint, which wakes the engine.
            case .declared: return false
            case .stop, .stopAtOnce, .rescan, .command, .reload, .pause, .resume: return true
            }
        }
    }

    /// The time to wait for attempts that are started together, so that one commit serves all of them.
    ///
    /// It is several times the duration of a trivial action; programs take longer, and finish one by one.
    private static let gatheringTime = Duration.microseconds(200)

    private let state = Mutex(State())
    private let sleep = Wake()

    package func post(_ message: Message) {
        if state.withLock({ $0.add(message) }) { wake() }
    }

    /// Extends the next sleep until all running attempts are finished, or for a short time.
    ///
    /// It is called before they start. If the wait was in vain the last time, it applies only to those that start
    /// now.
    ///
    /// - Returns: Whether all had finished in time then, so that these may be as quick.
    package func gather(started: Int, running: Int) -> Bool {
        state.withLock { state in
            state.wanted = max(1, state.wasFull == false ? started : running)
            return state.wasFull == true && started > 1
        }
    }

    /// Ends the engine's sleep; several calls before it wakes up count as one.
    package func wake() { sleep.signal() }

    /// Sleeps until woken or until the deadline; nil for no deadline.
    package func wait(until deadline: ContinuousClock.Instant?) {
        var end = deadline
        if state.withLock({ $0.wanted > 1 }) {
            let limit = ContinuousClock.now + Self.gatheringTime
            end = min(deadline ?? limit, limit)
        }
        sleep.wait(until: end)
    }

    /// Removes and returns all messages.
    package func take() -> [Message] {
        state.withLock { state in
            let messages = state.messages
            state = State(wasFull: state.wanted > 1 ? state.ended >= state.wanted : nil)
            return messages
        }
    }
}

import FileEvents
import Synchronization
package import System

/// What has happened of late, for those who follow it: the last thousand events, numbered.
///
/// Whoever publishes waits for nobody, and makes no text: that is done when somebody reads.
package final class EventFeed: Sendable {
    /// What an event is about.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        case attempt, file, status
    }

    struct Entry: Sendable {
        var id: UInt64
        var kind: Kind
        var text: @Sendable () -> String
    }

    fileprivate struct State {
        /// In the order of their ids; a ring once it is full.
        var entries: [Entry] = []
        var oldest = 0
        var next: UInt64
        var readers = 0
        /// Until when those who left may come back for what they missed.
        var memory: ContinuousClock.Instant?
        /// The id that came next when an event was not published last, since nobody followed.
        var lapse: UInt64?
        var wake: (@Sendable () -> Void)?
    }

    package static let length = 1000
    /// How long after the last reader events are kept that nobody else wants.
    private static let patience = Duration.seconds(300)

    private let state: Mutex<State>
    /// The first id that this program gives.
    private let begin: UInt64

    /// Begins to count at the present, so that ids go on when the program is started again.
    package init(now: Timestamp) {
        let milliseconds = UInt64(max(0, now.seconds)) * 1000 + UInt64(now.nanoseconds / 1_000_000)
        begin = milliseconds * 1000
        state = Mutex(State(next: begin))
    }

    /// Whether files' events are worth publishing, of which there are very many.
    ///
    /// Only to be asked when there is one; when it is not, one who comes back is told that something is missing.
    package var isFollowed: Bool {
        state.withLock { state in
            let isFollowed = state.readers > 0 || state.memory.map { $0 > .now } ?? false
            if !isFollowed { state.lapse = state.next }
            return isFollowed
        }
    }

    /// Adds an event.
    ///
    /// - Parameters:
    ///   - kind: What it is about.
    ///   - text: Its JSON, made when somebody reads it.
    package func publish(_ kind: Kind, _ text: @escaping @Sendable () -> String) {
        let wake = state.withLock { state -> (@Sendable () -> Void)? in
            let entry = Entry(id: state.next, kind: kind, text: text)
            state.next += 1
            if state.entries.count < Self.length {
                state.entries.append(entry)
            } else {
                state.entries[state.oldest] = entry
                state.oldest = (state.oldest + 1) % Self.length
            }
            return state.readers > 0 ? state.wake : nil
        }
        wake?()
    }

    // MARK: Readers

    func setWake(_ wake: (@Sendable () -> Void)?) { state.withLock { $0.wake = wake } }

    /// Notes one reader more.
    ///
    /// - Parameters:
    ///   - last: The id that it has seen last; nil for one that is new.
    ///   - recent: Of one that is new, how many attempts it wants of those that ended before.
    ///   - kinds: The kinds that it wants.
    /// - Returns: The id of the event that it is to read next, and whether there may have been others before that one of
    ///   which nobody knows.
    func join(after last: UInt64?, recent: Int, kinds: Set<Kind>) -> (next: UInt64, mayLack: Bool) {
        state.withLock { state in
            state.readers += 1
            guard let last else {
                let attempts = state.inOrder.filter { $0.kind == .attempt }.suffix(recent)
                return (attempts.first?.id ?? state.next, false)
            }
            // An id that was never given is of another program: whatever is there is news, and what else there was is
            // not known.
            let first = state.entries.isEmpty ? state.next : state.entries[state.oldest].id
            guard last < state.next, last + 1 >= begin else { return (first, true) }
            let hasLapsed = kinds.contains(.file) && state.lapse.map { last < $0 } ?? false
            return hasLapsed ? (max(last + 1, first), true) : (last + 1, false)
        }
    }

    func leave() {
        state.withLock { state in
            state.readers -= 1
            if state.readers == 0 { state.memory = .now + Self.patience }
        }
    }

    /// The events from an id on, some at a time.
    ///
    /// - Returns: The events, and how many there were between the id and the first of them that are not kept any more.
    func events(from id: UInt64, limit: Int) -> (events: [Entry], missed: UInt64) {
        state.withLock { state in
            guard id < state.next, !state.entries.isEmpty else { return ([], 0) }
            let first = state.entries[state.oldest].id
            let from = max(id, first)
            let count = min(limit, Int(state.next - from))
            let start = state.oldest + Int(from - first)
            let events = (0..<count).map { state.entries[(start + $0) % state.entries.count] }
            return (events, from - id)
        }
    }

    /// Whether there is an event of that id or a later one.
    func hasEvents(from id: UInt64) -> Bool { state.withLock { id < $0.next } }
}

extension EventFeed.State {
    fileprivate var inOrder: [EventFeed.Entry] { Array(entries[oldest...] + entries[..<oldest]) }
}

import Synchronization
package import System

/// The last thousand events, numbered, for clients that follow them.
///
/// Publishing an event never waits, and does not format it; that is done when a client reads it.
package final class EventFeed: Sendable {
    /// The subject of an event.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        case attempt, file, status
    }

    struct Entry: Sendable {
        var id: UInt64
        var kind: Kind
        var text: @Sendable () -> String
    }

    fileprivate struct State {
        /// The events ordered by id, up to twice as many as are repeated, so that old ones are dropped in large pieces.
        var entries: [Entry] = []
        var next: UInt64
        var readers = 0
        /// The time until which clients that left may reconnect and read the events they missed.
        var reconnectLimit: ContinuousClock.Instant?
        /// The next id at the time an event was last not published because no client followed.
        var lastUnpublished: UInt64?
        var wake: (@Sendable () -> Void)?

        /// The events that are repeated; their ids are consecutive.
        var last: ArraySlice<Entry> { entries.suffix(EventFeed.length) }
    }

    package static let length = 1000
    /// The time for which events about files are still published after the last client has left.
    private static let reconnectTime = Duration.seconds(300)

    private let state: Mutex<State>
    /// The first id of this process.
    private let firstID: UInt64

    /// Derives the first id from the current time, so that ids keep increasing across restarts.
    package init(now: Timestamp) {
        let milliseconds = UInt64(max(0, now.seconds)) * 1000 + UInt64(now.nanoseconds / 1_000_000)
        firstID = milliseconds * 1000
        state = Mutex(State(next: firstID))
    }

    /// Whether events about files, which are very frequent, should be published.
    ///
    /// Read it only when there is such an event: if it is false, clients that reconnect are informed that events are
    /// missing.
    package var isFollowed: Bool {
        state.withLock { state in
            let isFollowed = state.readers > 0 || state.reconnectLimit.map { $0 > .now } ?? false
            if !isFollowed { state.lastUnpublished = state.next }
            return isFollowed
        }
    }

    /// Adds an event.
    ///
    /// - Parameters:
    ///   - kind: The subject.
    ///   - text: Returns its JSON; called when a client reads the event.
    package func publish(_ kind: Kind, _ text: @escaping @Sendable () -> String) {
        let wake = state.withLock { state -> (@Sendable () -> Void)? in
            let entry = Entry(id: state.next, kind: kind, text: text)
            state.next += 1
            state.entries.append(entry)
            if state.entries.count == 2 * Self.length { state.entries.removeFirst(Self.length) }
            return state.readers > 0 ? state.wake : nil
        }
        wake?()
    }

    // MARK: Readers

    func setWake(_ wake: (@Sendable () -> Void)?) { state.withLock { $0.wake = wake } }

    /// Adds a client.
    ///
    /// - Parameters:
    ///   - last: The id that it has received last; nil for a new client.
    ///   - recent: The number of previous attempts that a new client requests.
    ///   - kinds: The kinds that it requests.
    /// - Returns: The id of the event to read next, and whether earlier events may be missing.
    func join(after last: UInt64?, recent: Int, kinds: Set<Kind>) -> (next: UInt64, hasGap: Bool) {
        state.withLock { state in
            state.readers += 1
            guard let last else {
                let attempts = state.last.filter { $0.kind == .attempt }.suffix(recent)
                return (attempts.first?.id ?? state.next, false)
            }
            // An id that was never assigned belongs to another process: all existing events are new, and others may be
            // missing.
            let first = state.last.first?.id ?? state.next
            guard last < state.next, last + 1 >= firstID else { return (first, true) }
            let isIncomplete = kinds.contains(.file) && state.lastUnpublished.map { last < $0 } ?? false
            return isIncomplete ? (max(last + 1, first), true) : (last + 1, false)
        }
    }

    func leave() {
        state.withLock { state in
            state.readers -= 1
            if state.readers == 0 { state.reconnectLimit = .now + Self.reconnectTime }
        }
    }

    /// Returns events starting at an id, up to a limit.
    ///
    /// - Returns: The events, and the number of events between the id and the first of them that are no longer stored.
    func events(from id: UInt64, limit: Int) -> (events: [Entry], missed: UInt64) {
        state.withLock { state in
            guard id < state.next, let first = state.last.first?.id else { return ([], 0) }
            let from = max(id, first)
            return (Array(state.last.dropFirst(Int(from - first)).prefix(limit)), from - id)
        }
    }
}

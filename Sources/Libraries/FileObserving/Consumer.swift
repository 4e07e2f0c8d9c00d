@preconcurrency import Dispatch
import FileEvents
import Synchronization
import System

/// An event of the observer.
struct ObservedChange: Sendable {
    var event: FileEvent
    /// The metadata of the file that was replaced by a move.
    var replaced: Snapshot?
}

/// The reason why an observation ended: it was stopped, or it failed.
typealias Termination = Result<Void, ObservationError>

/// The position of one reader: the events that it has not received yet.
final class Consumer: Sendable {
    private struct State {
        var rows: ReaderRows
        var waiters: [@Sendable () -> Void] = []
        var termination: Termination?
    }

    private let state: Mutex<State>

    init(mask: EventMask, roots: [PathBytes]) { state = Mutex(State(rows: ReaderRows(mask: mask, roots: roots))) }

    // MARK: Observer side

    var hasEnded: Bool { state.withLock { $0.termination != nil } }

    func deliver(_ changes: [ObservedChange]) {
        wake { state in
            guard state.termination == nil else { return false }
            for change in changes { state.rows.add(change.event, replacing: change.replaced) }
            return !state.rows.isEmpty
        }
    }

    /// Finishes the sequence: after a failure, behind the collected events; otherwise at once.
    func end(_ termination: Termination) {
        wake { state in
            guard state.termination == nil else { return false }
            state.termination = termination
            if case .success = termination { state.rows = ReaderRows(mask: []) }
            return true
        }
    }

    /// Resumes all waiters if the closure returns true.
    private func wake(after change: (inout State) -> Bool) {
        let waiters = state.withLock { state in
            guard change(&state) else { return [] as [@Sendable () -> Void] }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter() }
    }

    // MARK: Reader side

    /// Removes and returns one event, or all.
    ///
    /// - Returns: The events; none when the observer was stopped; nil when there are none yet.
    /// - Throws: The error that ended the observation, after the collected events.
    func take(all: Bool) throws(ObservationError) -> [FileEvent]? {
        let (events, termination) = state.withLock { state in
            (all ? state.rows.takeAll() : state.rows.takeFirst().map { [$0] } ?? [], state.termination)
        }
        if !events.isEmpty { return events }
        try termination?.get()
        return termination == nil ? nil : []
    }

    /// Suspends until there may be an event, the end, or a cancellation.
    func wait(isolation: isolated (any Actor)?) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation(isolation: isolation) { continuation in
                // A cancellation is either detected here, or finds the waiter in the list.
                if !register(unless: { Task.isCancelled }, { continuation.resume() }) { continuation.resume() }
            }
        } onCancel: {
            wake { _ in true }
        }
    }

    /// Blocks until there may be an event, or the end.
    func wait() {
        let isTime = DispatchSemaphore(value: 0)
        if register({ isTime.signal() }) { isTime.wait() }
    }

    /// Adds a waiter, unless there is something to take, or the condition is met; returns whether it was added.
    private func register(unless isOver: () -> Bool = { false }, _ waiter: @escaping @Sendable () -> Void) -> Bool {
        state.withLock { state in
            if isOver() || state.termination != nil || !state.rows.isEmpty { return false }
            state.waiters.append(waiter)
            return true
        }
    }
}

package import FileEvents
import Synchronization
import System

/// The set of dirty paths between a watcher and its reader.
///
/// With a slow reader, hints of the same path merge. Nothing is dropped, and memory
/// is bounded by the number of different paths that changed. A watcher stops listing
/// directories while the queue is full; hints from kernel events are still added.
/// Paths are returned in the order in which they first became dirty.
package final class HintQueue: Sendable {
    private struct State {
        /// The positions of paths in `hints`; filled when the first hint has to be merged.
        var positions: [PathBytes: Int] = [:]
        /// Whether all hints come from the initial listing, which finds each path once, so that nothing has to be
        /// merged.
        var isListing = true
        var hints: [Hint] = []
        var reports: [WatchReport] = []
        var whenEmptied: (@Sendable () -> Void)?

        var isEmpty: Bool { hints.isEmpty && reports.isEmpty }

        mutating func add(_ added: [Hint]) {
            if isListing {
                if added.allSatisfy({ $0.origin == .scan && $0.signs == .listed }) {
                    hints += added
                    return
                }
                isListing = false
                positions.reserveCapacity(hints.count + added.count)
                let waiting = hints
                hints = []
                merge(waiting)
            }
            merge(added)
        }

        private mutating func merge(_ added: [Hint]) {
            for hint in added {
                let next = hints.count
                let position = Self.settle(&positions[hint.path, default: next])
                if position < next { hints[position].merge(hint) } else { hints.append(hint) }
            }
        }

        /// Stores the default value of a dictionary access, with a single lookup.
        private static func settle(_ position: inout Int) -> Int { position }
    }

    /// Everything added since the last `take`.
    package struct Batch: Sendable {
        package var hints: [Hint]
        package var reports: [WatchReport]

        package init(hints: [Hint], reports: [WatchReport]) {
            self.hints = hints
            self.reports = reports
        }
    }

    /// The number of hints at which the queue is full.
    private let capacity: Int
    private let state = Mutex(State())
    private let wake: @Sendable () -> Void

    /// Creates a queue that calls `wake` whenever it becomes non-empty, on the writer's thread.
    ///
    /// - Parameters:
    ///   - capacity: The number of hints at which the queue is full and the listing of directories pauses.
    ///   - wake: Must not block.
    package init(capacity: Int = 50_000, wake: @escaping @Sendable () -> Void) {
        self.capacity = capacity
        self.wake = wake
    }

    /// Whether the reader has so many hints to process that listing should pause.
    var isFull: Bool { state.withLock { $0.hints.count >= capacity } }

    /// Adds hints and reports in one step, so that a reader sees both or neither.
    package func add(_ hints: [Hint], reports: [WatchReport] = []) {
        guard !hints.isEmpty || !reports.isEmpty else { return }
        let wasEmpty = state.withLock { state in
            let wasEmpty = state.isEmpty
            state.add(hints)
            state.reports += reports
            return wasEmpty
        }
        if wasEmpty { wake() }
    }

    /// Removes and returns everything.
    package func take() -> Batch {
        let taken = state.withLock { state in
            defer { state = State(whenEmptied: state.whenEmptied) }
            return state
        }
        if taken.hints.count >= capacity { taken.whenEmptied?() }
        return Batch(hints: taken.hints, reports: taken.reports)
    }

    /// Sets the closure that is called, on the reader's thread, after a full queue was emptied.
    func setWhenEmptied(_ body: (@Sendable () -> Void)?) { state.withLock { $0.whenEmptied = body } }
}

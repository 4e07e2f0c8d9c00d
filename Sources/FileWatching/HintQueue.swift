import FileEvents
import Synchronization

/// The set of dirty paths between a watcher and its reader.
///
/// A slow reader makes hints of one path merge; nothing is dropped, and memory
/// is bounded by the number of different paths that changed. Paths come out in
/// the order in which they first became dirty.
package final class HintQueue: Sendable {
    private struct State {
        var places: [PathBytes: Int] = [:]
        var hints: [Hint] = []
        var reports: [WatchReport] = []

        var isEmpty: Bool { hints.isEmpty && reports.isEmpty }
    }

    /// All that has gathered since the last `take`.
    package struct Batch: Sendable {
        package var hints: [Hint]
        package var reports: [WatchReport]

        package init(hints: [Hint], reports: [WatchReport]) {
            self.hints = hints
            self.reports = reports
        }
    }

    private let state = Mutex(State())
    private let wake: @Sendable () -> Void

    /// Makes a queue that calls `wake` whenever it stops being empty, on the writer's thread.
    package init(wake: @escaping @Sendable () -> Void) { self.wake = wake }

    /// Adds hints and reports in one step, so that a reader sees both or neither.
    package func add(_ hints: [Hint], reports: [WatchReport] = []) {
        guard !hints.isEmpty || !reports.isEmpty else { return }
        let wasEmpty = state.withLock { state in
            let wasEmpty = state.isEmpty
            for hint in hints {
                if let place = state.places[hint.path] {
                    state.hints[place].merge(hint)
                } else {
                    state.places[hint.path] = state.hints.count
                    state.hints.append(hint)
                }
            }
            state.reports += reports
            return wasEmpty
        }
        if wasEmpty { wake() }
    }

    /// Removes and returns everything.
    package func take() -> Batch {
        let taken = state.withLock { state in
            let taken = state
            state = State()
            return taken
        }
        return Batch(hints: taken.hints, reports: taken.reports)
    }
}

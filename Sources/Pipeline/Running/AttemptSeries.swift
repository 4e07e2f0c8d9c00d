import FileEvents
import Jobs
import Records
import Rules
import Synchronization
import System

/// Attempts at brief jobs of one rule that run one after another in one slot, so that one commit serves all of them;
/// or one attempt.
///
/// Those that have not started can be taken out at any time.
package final class AttemptSeries: Sendable {
    private struct State {
        var attempts: [Attempt]
        /// The number of attempts that have started.
        var started = 0
        /// The time at which the last of them started; nil if none runs.
        var since: Timestamp?
        var results: [AttemptResult] = []
    }

    private let first: Attempt
    private let state: Mutex<State>

    init(_ first: Attempt) {
        self.first = first
        state = Mutex(State(attempts: [first]))
    }

    /// The first job, which identifies the series.
    var id: JobID { first.inputs[0].job.id }

    var rule: Rule { first.rule }

    /// Adds an attempt at the end, before the series runs.
    func add(_ attempt: Attempt) { state.withLock { $0.attempts.append(attempt) } }

    /// The attempts that have run, run or will run, in order.
    var attempts: [Attempt] { state.withLock { $0.attempts } }

    /// The running attempt, and the time of its start.
    var current: (attempt: Attempt, since: Timestamp)? {
        state.withLock { state in state.since.map { (state.attempts[state.started - 1], $0) } }
    }

    /// Runs the attempts until one does not succeed, and informs the engine.
    func run() async {
        while let attempt = next() {
            let result = await attempt.run()
            state.withLock { state in
                state.results.append(result)
                state.since = nil
            }
            if !result.hasSucceeded { break }
        }
        first.engine.mailbox.post(.ended(self))
    }

    private func next() -> Attempt? {
        let now = first.engine.host.clock.time()
        return state.withLock { state in
            guard state.started < state.attempts.count else { return nil }
            state.since = now
            state.started += 1
            return state.attempts[state.started - 1]
        }
    }

    /// Removes and returns the results so far, in order.
    func takeResults() -> [AttemptResult] { state.withLock { exchange(&$0.results, with: []) } }

    /// Removes and returns the attempts that have not started, the last one first, if any of them is for such a path.
    func takeWaiting(if isWanted: (PathBytes) -> Bool = { _ in true }) -> [Attempt] {
        state.withLock { state in
            let waiting = state.attempts[state.started...]
            guard waiting.contains(where: { $0.inputs[0].job.event.paths.contains(where: isWanted) }) else { return [] }
            defer { state.attempts.removeSubrange(state.started...) }
            return waiting.reversed()
        }
    }
}

import Synchronization

/// Runs tasks that may block on the threads of the ``EventLoop``, at most as many at once as its limit.
///
/// Handlers block as long as a disk copies, so they have their own threads instead of Swift's cooperative pool. A task
/// that waits for a program holds none.
package final class WorkerPool: TaskExecutor {
    private struct State {
        var work: [UnownedJob] = []
        /// The threads that run work, or are about to.
        var threads = 0
        /// The threads that may run work.
        var allowed: Int
        /// The number of jobs that have been taken.
        var taken: UInt64 = 0
        /// Whether a caller of ``submit(_:isQuick:)`` wakes threads for all work together.
        var isCollecting = false
        var isObserved = false
    }

    private let limit: Int
    private let state: Mutex<State>

    /// The number of threads that are used at first; as many more each time that none of them takes new work.
    private static let small = 8
    /// The time after which threads that take no work are considered to be blocked, even on a busy machine.
    private static let patience = Duration.milliseconds(100)

    package init(limit: Int) {
        self.limit = limit
        state = Mutex(State(allowed: min(limit, Self.small)))
    }

    /// Runs each work item on a thread.
    ///
    /// If the system refuses to create a thread, the work runs on the existing ones, or on the caller's thread if
    /// there are none.
    ///
    /// - Parameters:
    ///   - work: The work to run; for a single caller.
    ///   - isQuick: Whether each item probably finishes before another thread would wake up. Then only half as many
    ///     threads are woken, which also run the rest, unless ``wakeRest()`` is called first.
    package func submit(_ work: [@Sendable () async -> Void], isQuick: Bool = false) {
        state.withLock { $0.isCollecting = true }
        for item in work { Task(executorPreference: self) { await item() } }
        state.withLock { $0.isCollecting = false }
        wake(isQuick ? (work.count + 1) / 2 : work.count)
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isCollecting = state.withLock { state in
            state.work.append(job)
            return state.isCollecting
        }
        if !isCollecting { wake(1) }
    }

    /// Wakes threads for all work that still waits.
    package func wakeRest() { wake(.max) }

    /// Whether there is no work, and no thread runs any.
    package var isAtRest: Bool { state.withLock { $0.work.isEmpty && $0.threads == 0 } }

    private func wake(_ count: Int) {
        let (threads, taken) = state.withLock { state -> (Int, UInt64?) in
            let threads = min(count, state.work.count, state.allowed - state.threads)
            state.threads += threads
            let isShort = state.threads == state.allowed && state.work.count > threads
            let mayBeBlocked = isShort && state.allowed < limit && !state.isObserved
            if mayBeBlocked { state.isObserved = true }
            return (threads, mayBeBlocked ? state.taken : nil)
        }
        EventLoop.shared.run(on: threads) { [self] in runWork() }
        if let taken { observe(since: taken) }
    }

    /// Allows more threads if none of them takes new work for a while.
    private func observe(since taken: UInt64) {
        EventLoop.shared.call(at: .now + Self.patience) { [self] in
            let next = state.withLock { state -> UInt64? in
                let isBlocked = state.taken == taken && !state.work.isEmpty
                if isBlocked { state.allowed = min(state.allowed + Self.small, limit) }
                state.isObserved = !state.work.isEmpty && state.allowed < limit
                return state.isObserved ? state.taken : nil
            }
            wakeRest()
            if let next { observe(since: next) }
        }
    }

    private func runWork() {
        while let job = takeWork() { job.runSynchronously(on: asUnownedTaskExecutor()) }
    }

    private func takeWork() -> UnownedJob? {
        state.withLock { state in
            guard !state.work.isEmpty else {
                state.threads -= 1
                return nil
            }
            state.taken += 1
            return state.work.removeFirst()
        }
    }
}

@preconcurrency import Dispatch
import Synchronization

/// Threads that run tasks which may block, created on demand up to the limit.
///
/// Handlers block as long as a disk copies, so they have their own threads instead of Swift's cooperative pool. A task
/// that waits for a program holds none.
package final class WorkerPool: TaskExecutor {
    private struct State {
        var work: [UnownedJob] = []
        var threads = 0
        var idle = 0
        /// The number of jobs that have been taken.
        var taken: UInt64 = 0
        /// Whether a caller of ``submit(_:isQuick:)`` wakes threads for all work together.
        var isCollecting = false
        var isObserved = false
    }

    private let limit: Int
    private let state = Mutex(State())
    private let available = DispatchSemaphore(value: 0)

    /// The number of threads that are created as needed; as many more each time that none of them takes new work.
    private static let small = 8
    /// The time after which threads that take no work are considered to be blocked, even on a busy machine.
    private static let patience = Duration.milliseconds(100)

    package init(limit: Int) { self.limit = limit }

    /// Runs each work item on threads of the pool.
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
    package func wakeRest() {
        // A thread that is about to become idle also counts; a thread woken in vain becomes idle again.
        for _ in 0..<state.withLock({ $0.work.count }) { available.signal() }
    }

    /// Whether there is no work and all threads are idle, or about to find no work.
    package var isAtRest: Bool { state.withLock { $0.work.isEmpty && $0.idle == $0.threads } }

    private func wake(_ count: Int) {
        let (wanted, taken) = state.withLock { state -> (Int, UInt64?) in
            let lacking = max(0, state.work.count - state.idle)
            let wanted = max(0, min(lacking, min(limit, Self.small) - state.threads))
            state.threads += wanted
            let mayBeBlocked = lacking > wanted && state.threads < limit && !state.isObserved
            if mayBeBlocked { state.isObserved = true }
            return (wanted, mayBeBlocked ? state.taken : nil)
        }
        for _ in 0..<count { available.signal() }
        startThreads(wanted)
        if let taken { observe(since: taken) }
    }

    /// Creates more threads if none of them takes new work for a while.
    private func observe(since taken: UInt64) {
        EventLoop.shared.call(at: .now + Self.patience) { [self] in
            let (wanted, next) = state.withLock { state -> (Int, UInt64?) in
                let isBlocked = state.taken == taken
                let wanted = isBlocked ? min(state.work.count, Self.small, limit - state.threads) : 0
                state.threads += wanted
                state.isObserved = !state.work.isEmpty && state.threads < limit
                return (wanted, state.isObserved ? state.taken : nil)
            }
            startThreads(wanted)
            if let next { observe(since: next) }
        }
    }

    private func startThreads(_ count: Int) {
        for _ in 0..<count where WorkerThread(name: "alight-action", body: { self.serve() }) == nil {
            let isAlone = state.withLock { state in
                state.threads -= 1
                return state.threads == 0
            }
            if isAlone { runWork() }
        }
    }

    private func serve() {
        while true {
            runWork()
            state.withLock { $0.idle += 1 }
            available.wait()
            state.withLock { $0.idle -= 1 }
        }
    }

    private func runWork() {
        while let job = takeWork() { job.runSynchronously(on: asUnownedTaskExecutor()) }
    }

    private func takeWork() -> UnownedJob? {
        state.withLock { state in
            guard !state.work.isEmpty else { return nil }
            state.taken += 1
            return state.work.removeFirst()
        }
    }
}

@preconcurrency import Dispatch
import Synchronization
import System

/// Runs actions outside the engine's thread.
package protocol AttemptExecutor: Sendable {
    /// Starts each work item; see ``WorkerPool/submit(_:isQuick:)``.
    func submit(_ work: [@Sendable () -> Void], isQuick: Bool)

    /// Ensures that no submitted work waits for other work.
    func wakeRest()
}

/// Threads that run actions, created on demand up to the limit.
///
/// Actions block for as long as a program runs or a disk copies, so they have their own threads instead of Swift's
/// cooperative pool.
package final class WorkerPool: AttemptExecutor {
    private struct State {
        var work: [@Sendable () -> Void] = []
        var threads = 0
        var idle = 0
    }

    private let limit: Int
    private let state = Mutex(State())
    private let available = DispatchSemaphore(value: 0)

    package init(limit: Int) { self.limit = limit }

    /// Runs each work item on a thread of the pool.
    ///
    /// If the system refuses to create a thread, the work runs on the existing ones, or on the caller's thread if
    /// there are none.
    ///
    /// - Parameters:
    ///   - work: The work to run.
    ///   - isQuick: Whether each item probably finishes before another thread would wake up. Then only half as many
    ///     threads are woken, which also run the rest, unless ``wakeRest()`` is called first.
    package func submit(_ work: [@Sendable () -> Void], isQuick: Bool = false) {
        let wanted = state.withLock { state in
            state.work += work
            let wanted = max(0, min(state.work.count - state.idle, limit - state.threads))
            state.threads += wanted
            return wanted
        }
        for _ in 0..<(isQuick ? (work.count + 1) / 2 : work.count) { available.signal() }
        for _ in 0..<wanted where WorkerThread(name: "alight-action", body: { self.serve() }) == nil {
            let isAlone = state.withLock { state in
                state.threads -= 1
                return state.threads == 0
            }
            if isAlone { while let work = takeWork() { work() } }
        }
    }

    /// Wakes threads for all work that still waits.
    package func wakeRest() {
        // A thread that is about to become idle also counts; a thread woken in vain becomes idle again.
        for _ in 0..<state.withLock({ $0.work.count }) { available.signal() }
    }

    /// Whether there is no work and all threads are idle, or about to find no work.
    package var isAtRest: Bool { state.withLock { $0.work.isEmpty && $0.idle == $0.threads } }

    private func serve() {
        while true {
            while let work = takeWork() { work() }
            state.withLock { $0.idle += 1 }
            available.wait()
            state.withLock { $0.idle -= 1 }
        }
    }

    private func takeWork() -> (@Sendable () -> Void)? {
        state.withLock { $0.work.isEmpty ? nil : $0.work.removeFirst() }
    }
}

@preconcurrency import Dispatch
import Synchronization
import System

/// Runs actions beside the engine's thread.
package protocol AttemptExecutor: Sendable {
    /// Begins to run each work; see ``WorkerPool/submit(_:isQuick:)``.
    func submit(_ work: [@Sendable () -> Void], isQuick: Bool)

    /// Has no submitted work wait for another one.
    func wakeRest()
}

/// Threads that run actions, as many as are needed and never more than the limit.
///
/// Actions block for as long as a program runs or a disk copies, so they have
/// threads of their own instead of Swift's cooperative pool.
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

    /// Runs each work on a thread of the pool.
    ///
    /// When the system refuses a thread the work runs on those that are there, or
    /// here if there is none at all.
    ///
    /// - Parameters:
    ///   - work: What to run.
    ///   - isQuick: Whether each is likely done before another thread would be awake: then only half as many are
    ///     woken, which take the rest as well, unless ``wakeRest()`` is called first.
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
        // A thread that is about to rest counts, too: who is woken in vain rests again.
        for _ in 0..<state.withLock({ $0.work.count }) { available.signal() }
    }

    /// Whether nothing is to be done and all threads have come to rest, or are about to look in vain.
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

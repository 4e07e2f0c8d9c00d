@preconcurrency import Dispatch
import FileWatching
import Synchronization

/// Threads that run actions, as many as are needed and never more than the limit.
///
/// Actions block for as long as a program runs or a disk copies, so they have
/// threads of their own instead of Swift's cooperative pool.
final class WorkerPool: Sendable {
    private struct State {
        var work: [@Sendable () -> Void] = []
        var threads = 0
        var idle = 0
    }

    private let limit: Int
    private let state = Mutex(State())
    private let available = DispatchSemaphore(value: 0)

    init(limit: Int) { self.limit = limit }

    /// Runs the work on a thread of the pool.
    ///
    /// When the system refuses a thread the work runs on one that is there, or
    /// here if there is none at all.
    func submit(_ work: @escaping @Sendable () -> Void) {
        let needsThread = state.withLock { state in
            state.work.append(work)
            guard state.idle < state.work.count, state.threads < limit else { return false }
            state.threads += 1
            return true
        }
        available.signal()
        guard needsThread else { return }
        if WorkerThread(name: "alight-action", body: { self.serve() }) == nil {
            let isAlone = state.withLock { state in
                state.threads -= 1
                return state.threads == 0
            }
            if isAlone, available.wait(timeout: .now()) == .success { takeWork()?() }
        }
    }

    private func serve() {
        while true {
            state.withLock { $0.idle += 1 }
            available.wait()
            let work = takeWork()
            work?()
        }
    }

    private func takeWork() -> (@Sendable () -> Void)? {
        state.withLock { state in
            state.idle = max(0, state.idle - 1)
            return state.work.isEmpty ? nil : state.work.removeFirst()
        }
    }
}

import Foundation
import Synchronization
import System

/// The thread that starts launchers for all others, and stops those that have been idle for long.
///
/// `Process.run()` gives the thread that calls it a run loop, with three descriptors that stay open as long as the
/// thread lives; the threads that run actions would use as many as their programs do. A Dispatch timer would make
/// Dispatch check its threads once a second, indefinitely.
package final class StarterThread: Sendable {
    private struct State {
        var isServing = false
        /// The work for the thread, each not before its time.
        var work: [(time: ContinuousClock.Instant, body: @Sendable () -> Void)] = []
    }

    private static let shared = StarterThread()

    private let state = Mutex(State())
    private let isAsked = DispatchSemaphore(value: 0)

    /// Starts a launcher, and waits until it is started.
    static func start(_ launcher: PathBytes) throws(LaunchFailure) -> LauncherProcess {
        let started = PendingValue<Result<LauncherProcess, LaunchFailure>>()
        let isAdded = shared.add(at: .now) {
            started.set(Result { () throws(LaunchFailure) in try LauncherProcess(launcher) })
        }
        guard isAdded else { throw LaunchFailure("no thread can be started") }
        guard let result = started.wait() else { throw LaunchFailure("no launcher was started") }
        return try result.get()
    }

    /// Schedules the closure on the thread, not before the given time; it must not block.
    package static func call(at time: ContinuousClock.Instant, _ body: @escaping @Sendable () -> Void) {
        _ = shared.add(at: time, body)
    }

    /// Adds work for the thread, which is started with the first; returns false when no thread can be created.
    private func add(at time: ContinuousClock.Instant, _ body: @escaping @Sendable () -> Void) -> Bool {
        let isServing = state.withLock { state in
            if !state.isServing {
                guard let thread = WorkerThread(name: "alight-start", body: { self.serve() }) else { return false }
                thread.detach()
                state.isServing = true
            }
            state.work.append((time, body))
            return true
        }
        if isServing { isAsked.signal() }
        return isServing
    }

    private func serve() {
        while true {
            let now = ContinuousClock.now
            let (due, next) = state.withLock { state in
                let index = state.work.firstIndex { $0.time <= now }
                return (index.map { state.work.remove(at: $0).body }, state.work.map(\.time).min())
            }
            if let due {
                due()
            } else if let next {
                _ = isAsked.wait(timeout: .now() + (next - now) / .seconds(1))
            } else {
                isAsked.wait()
            }
        }
    }
}

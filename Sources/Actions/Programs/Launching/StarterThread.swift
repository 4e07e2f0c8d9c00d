import Foundation
import Synchronization
import System

/// The thread that starts launchers for all others, and stops those that have been idle for long.
///
/// `Process.run()` gives the thread that calls it a run loop, with three descriptors that stay open as long as the
/// thread lives; the threads that run actions would use as many as their programs do. A Dispatch timer would make
/// Dispatch check its threads once a second, indefinitely.
package final class StarterThread: Sendable {
    private final class Request: Sendable {
        let launcher: PathBytes
        let result = Mutex<Result<LauncherProcess, LaunchFailure>?>(nil)
        let isDone = DispatchSemaphore(value: 0)

        init(_ launcher: PathBytes) { self.launcher = launcher }
    }

    private struct State {
        var isServing = false
        var requests: [Request] = []
        var later: [(moment: ContinuousClock.Instant, body: @Sendable () -> Void)] = []
    }

    private static let shared = StarterThread()

    private let state = Mutex(State())
    private let isAsked = DispatchSemaphore(value: 0)

    /// Starts a launcher, and waits until it is started.
    static func start(_ launcher: PathBytes) throws(LaunchFailure) -> LauncherProcess {
        let request = Request(launcher)
        guard shared.add(request) else { throw LaunchFailure("no thread can be started") }
        request.isDone.wait()
        guard let result = request.result.withLock({ $0 }) else { throw LaunchFailure("no launcher was started") }
        return try result.get()
    }

    /// Schedules the closure on the thread, not before the given time; it must not block.
    package static func call(at moment: ContinuousClock.Instant, _ body: @escaping @Sendable () -> Void) {
        shared.change { $0.later.append((moment, body)) }
    }

    private func add(_ request: Request) -> Bool { change { $0.requests.append(request) } }

    /// Adds work for the thread, which is started with the first; returns false when no thread can be created.
    @discardableResult
    private func change(_ body: (inout State) -> Void) -> Bool {
        let isServing = state.withLock { state in
            if !state.isServing {
                guard let thread = WorkerThread(name: "alight-start", body: { self.serve() }) else { return false }
                thread.detach()
                state.isServing = true
            }
            body(&state)
            return true
        }
        if isServing { isAsked.signal() }
        return isServing
    }

    private func serve() {
        while true {
            let now = ContinuousClock.now
            let (request, due, next) = state.withLock { state in
                let due = state.later.filter { $0.moment <= now }
                state.later.removeAll { $0.moment <= now }
                let request = state.requests.isEmpty ? nil : state.requests.removeFirst()
                return (request, due, state.later.map(\.moment).min())
            }
            for one in due { one.body() }
            if let request {
                let result = Result { () throws(LaunchFailure) in try LauncherProcess(request.launcher) }
                request.result.withLock { $0 = result }
                request.isDone.signal()
            } else if due.isEmpty {
                if let next { _ = isAsked.wait(timeout: .now() + (next - now) / .seconds(1)) } else { isAsked.wait() }
            }
        }
    }
}

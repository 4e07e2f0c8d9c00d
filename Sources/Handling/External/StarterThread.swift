import FileEvents
import FileWatching
import Foundation
import Synchronization

/// The thread that starts launchers, for all others.
///
/// `Process.run()` gives the thread that calls it a run loop, with three
/// descriptors that it keeps as long as it lives; the threads that run actions
/// would take as many as their programs do.
final class StarterThread: Sendable {
    private final class Request: Sendable {
        let launcher: PathBytes
        let result = Mutex<Result<LauncherProcess, LaunchFailure>?>(nil)
        let isDone = DispatchSemaphore(value: 0)

        init(_ launcher: PathBytes) { self.launcher = launcher }
    }

    private struct State {
        var isServing = false
        var requests: [Request] = []
    }

    private static let shared = StarterThread()

    private let state = Mutex(State())
    private let isAsked = DispatchSemaphore(value: 0)

    /// Starts a launcher, and waits for that.
    static func start(_ launcher: PathBytes) throws(LaunchFailure) -> LauncherProcess {
        let request = Request(launcher)
        guard shared.add(request) else { throw LaunchFailure("there is no room for a thread") }
        request.isDone.wait()
        guard let result = request.result.withLock({ $0 }) else { throw LaunchFailure("no launcher was started") }
        return try result.get()
    }

    /// Adds a request, and starts the thread with the first one; false when there can be no thread.
    private func add(_ request: Request) -> Bool {
        let isAdded = state.withLock { state in
            if !state.isServing {
                guard let thread = WorkerThread(name: "alight-start", body: { self.serve() }) else { return false }
                thread.detach()
                state.isServing = true
            }
            state.requests.append(request)
            return true
        }
        if isAdded { isAsked.signal() }
        return isAdded
    }

    private func serve() {
        while true {
            isAsked.wait()
            guard let request = state.withLock({ $0.requests.isEmpty ? nil : $0.requests.removeFirst() }) else {
                continue
            }
            let result = Result { () throws(LaunchFailure) in try LauncherProcess(request.launcher) }
            request.result.withLock { $0 = result }
            request.isDone.signal()
        }
    }
}

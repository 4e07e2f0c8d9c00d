import FileWatching
import Synchronization

/// A thread for what may block, made when it is first needed.
final class Worker: Sendable {
    private struct State {
        var work: [@Sendable () -> Void] = []
        var hasThread = false
        var isStopped = false
    }

    private let state = Mutex(State())
    private let wake: Wake

    init() throws(WatchError) { wake = try Wake() }

    /// Does the work after what was there before it; false when there is no thread to be had.
    func submit(_ work: @escaping @Sendable () -> Void) -> Bool {
        let isFirst = state.withLock { state in
            state.work.append(work)
            defer { state.hasThread = true }
            return !state.hasThread
        }
        if isFirst {
            guard let thread = WorkerThread(name: "alight-answers", body: { self.serve() }) else {
                state.withLock { state in
                    state.hasThread = false
                    state.work = []
                }
                return false
            }
            thread.detach()
        }
        wake.signal()
        return true
    }

    /// Lets the thread end when it has done what it is at.
    func stop() {
        state.withLock { state in
            state.isStopped = true
            state.work = []
        }
        wake.signal()
    }

    private func serve() {
        while true {
            wake.wait(until: nil)
            while true {
                let (next, isStopped) = state.withLock { state -> ((@Sendable () -> Void)?, Bool) in
                    (state.work.isEmpty ? nil : state.work.removeFirst(), state.isStopped)
                }
                if isStopped { return }
                guard let next else { break }
                next()
            }
        }
    }
}

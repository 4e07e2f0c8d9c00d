import FileWatching
import Synchronization

/// A thread for what may block, made when it is first needed.
final class Worker: Sendable {
    /// What became of work that was submitted.
    enum Submission: Sendable {
        case taken, full, withoutThread
    }

    private struct State {
        /// What is not begun, each with the number by which it can be forgotten.
        var work: [(number: UInt64, body: @Sendable () -> Void)] = []
        var hasThread = false
        var isStopped = false
    }

    private let state = Mutex(State())
    private let wake: Wake
    private let most: Int

    /// Makes one that has nothing to do yet.
    ///
    /// - Parameter most: How much work may wait behind what is being done.
    /// - Throws: When there is no descriptor to be had.
    init(most: Int = .max) throws(WatchError) {
        wake = try Wake()
        self.most = most
    }

    /// Does the work after what was there before it.
    func submit(_ number: UInt64 = 0, _ work: @escaping @Sendable () -> Void) -> Submission {
        let (isFull, isFirst) = state.withLock { state -> (Bool, Bool) in
            guard state.work.count < most else { return (true, false) }
            state.work.append((number: number, body: work))
            defer { state.hasThread = true }
            return (false, !state.hasThread)
        }
        if isFull { return .full }
        if isFirst {
            guard let thread = WorkerThread(name: "alight-answers", body: { self.serve() }) else {
                state.withLock { state in
                    state.hasThread = false
                    state.work = []
                }
                return .withoutThread
            }
            thread.detach()
        }
        wake.signal()
        return .taken
    }

    /// Doesn't do the work of that number, unless it has begun.
    func forget(_ number: UInt64) {
        state.withLock { state in state.work.removeAll { $0.number == number } }
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
                    (state.work.isEmpty ? nil : state.work.removeFirst().body, state.isStopped)
                }
                if isStopped { return }
                guard let next else { break }
                next()
            }
        }
    }
}

import Dispatch
import Synchronization
import System

/// Work on a thread of its own that goes on only while its owner waits for it.
///
/// At any moment either the owner or one coroutine runs, so that the order of all they do is the owner's.
final class Coroutine: Sendable {
    private let resumed = DispatchSemaphore(value: 0)
    private let paused = DispatchSemaphore(value: 0)
    private let ended = Atomic<Bool>(false)

    var isOver: Bool { ended.load(ordering: .acquiring) }

    /// Makes a coroutine that has not begun.
    init(_ body: @escaping @Sendable (Coroutine) -> Void) {
        CoroutineThreads.shared.run { [self] in
            resumed.wait()
            body(self)
            ended.store(true, ordering: .releasing)
            paused.signal()
        }
    }

    /// Lets it run to its next ``pause()`` or to its end.
    func resume() {
        precondition(!isOver, "it has ended")
        resumed.signal()
        paused.wait()
    }

    /// Called by the body: lets the owner go on until it calls ``resume()``.
    func pause() {
        paused.signal()
        resumed.wait()
    }
}

/// Threads that are used again and again.
private final class CoroutineThreads: Sendable {
    static let shared = CoroutineThreads()

    private struct State {
        var work: [@Sendable () -> Void] = []
        var idle = 0
    }

    private let state = Mutex(State())
    private let available = DispatchSemaphore(value: 0)

    func run(_ work: @escaping @Sendable () -> Void) {
        let needsThread = state.withLock { state in
            state.work.append(work)
            return state.idle < state.work.count
        }
        available.signal()
        guard needsThread else { return }
        guard let thread = WorkerThread(name: "simulated", body: { self.serve() }) else {
            preconditionFailure("no thread for an action")
        }
        thread.detach()
    }

    private func serve() {
        while true {
            state.withLock { $0.idle += 1 }
            available.wait()
            let work = state.withLock { state in
                state.idle -= 1
                return state.work.removeFirst()
            }
            work()
        }
    }
}

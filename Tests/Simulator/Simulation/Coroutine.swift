import Dispatch
import Engine
import Running
import Synchronization
import System

/// Work on a separate thread that runs only while its owner waits for it.
///
/// At any time, either the owner or one coroutine runs, so the owner determines the order of everything they do.
package final class Coroutine: Sendable {
    private let resumed = DispatchSemaphore(value: 0)
    private let paused = DispatchSemaphore(value: 0)
    private let ended = Atomic<Bool>(false)

    package var isOver: Bool { ended.load(ordering: .acquiring) }

    /// Creates a coroutine that has not started.
    package init(_ body: @escaping @Sendable (Coroutine) -> Void) {
        CoroutineThreads.shared.run { [self] in
            resumed.wait()
            body(self)
            ended.store(true, ordering: .releasing)
            paused.signal()
        }
    }

    /// Runs the coroutine to its next ``pause()`` or to its end.
    package func resume() {
        precondition(!isOver, "it has ended")
        resumed.signal()
        paused.wait()
    }

    /// Suspends the body, which calls this, until the owner calls ``resume()`` again.
    package func pause() {
        paused.signal()
        resumed.wait()
    }
}

/// Threads that are reused.
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

/// An executor that runs attempts as coroutines.
final class CoroutineExecutor: AttemptExecutor, @unchecked Sendable {
    // The simulation outlives its engine.
    unowned let simulation: SimulatedRun

    init(_ simulation: SimulatedRun) { self.simulation = simulation }

    func submit(_ work: [@Sendable () async -> Void], isQuick: Bool) {
        for attempt in work { Task(executorPreference: self) { await attempt() } }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let coroutine = Coroutine { [self] _ in job.runSynchronously(on: asUnownedTaskExecutor()) }
        simulation.activities.append(SimulatedRun.Activity(coroutine))
    }

    func wakeRest() {}
}

import Foundation
import Synchronization

/// Runs blocking closures on separate threads, so that Swift's few cooperative threads stay available for other tests.
///
/// The number at a time is limited, because most of them wait for a program that uses the whole machine.
package final class Blocking: Sendable {
    private let state = Mutex((running: 0, waiting: [CheckedContinuation<Void, Never>]()))
    private let limit: Int
    /// The instance for closures that are mostly idle.
    private static let many = Blocking(atMost: 16)

    package init(atMost limit: Int) { self.limit = limit }

    /// Runs the closure to completion on another thread.
    ///
    /// - Throws: Any error thrown by the closure.
    package static func run(_ body: @escaping @Sendable () throws -> Void) async throws { try await many.run(body) }

    /// Runs the closure to completion on another thread, as soon as the limit allows.
    ///
    /// The closure stays in its task, so that its expectations belong to the calling test.
    ///
    /// - Throws: Any error thrown by the closure.
    package func run(_ body: @escaping @Sendable () throws -> Void) async throws {
        await enter()
        defer { leave() }
        try await withTaskExecutorPreference(ThreadForEach.shared) { try body() }
    }

    private func enter() async {
        await withCheckedContinuation { continuation in
            let mayGo = state.withLock { state in
                if state.running < limit {
                    state.running += 1
                    return true
                }
                state.waiting.append(continuation)
                return false
            }
            if mayGo { continuation.resume() }
        }
    }

    private func leave() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            if !state.waiting.isEmpty { return state.waiting.removeFirst() }
            state.running -= 1
            return nil
        }
        next?.resume()
    }
}

/// Runs each job on a new thread.
private final class ThreadForEach: TaskExecutor {
    static let shared = ThreadForEach()

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        Thread.detachNewThread { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

import Foundation
import Synchronization

/// Runs what blocks on threads of its own, so that Swift's few cooperative threads stay free for other tests.
///
/// So many at once and no more, since each mostly is a program that is built to use what there is.
package final class Blocking: Sendable {
    private let state = Mutex((running: 0, waiting: [CheckedContinuation<Void, Never>]()))
    private let limit: Int
    /// For what mostly rests.
    private static let many = Blocking(atMost: 16)

    package init(atMost limit: Int) { self.limit = limit }

    /// Runs the closure to its end on another thread.
    ///
    /// - Throws: What the closure throws.
    package static func run(_ body: @escaping @Sendable () throws -> Void) async throws { try await many.run(body) }

    /// Runs the closure to its end on another thread, when its turn has come.
    ///
    /// It stays in its task, so that what it expects belongs to its test.
    ///
    /// - Throws: What the closure throws.
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

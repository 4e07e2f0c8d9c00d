import Foundation
import Synchronization

/// Runs what blocks on threads of its own, so that Swift's few cooperative threads stay free for other tests.
///
/// No more than eight at once: each is a program that is built to use what there is.
package enum Blocking {
    private static let state = Mutex((running: 0, waiting: [CheckedContinuation<Void, Never>]()))
    private static let limit = 8

    /// Runs the closure to its end on another thread.
    ///
    /// - Throws: What the closure throws.
    package static func run(_ body: @escaping @Sendable () throws -> Void) async throws {
        await enter()
        defer { leave() }
        let result: Result<Void, any Error> = await withCheckedContinuation { continuation in
            Thread { continuation.resume(returning: Result { try body() }) }.start()
        }
        try result.get()
    }

    private static func enter() async {
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

    private static func leave() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            if !state.waiting.isEmpty { return state.waiting.removeFirst() }
            state.running -= 1
            return nil
        }
        next?.resume()
    }
}

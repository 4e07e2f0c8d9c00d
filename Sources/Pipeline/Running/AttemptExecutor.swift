package import System

/// Runs attempts outside the engine's thread.
package protocol AttemptExecutor: TaskExecutor {
    /// Starts each work item; see ``WorkerPool/submit(_:isQuick:)``.
    func submit(_ work: [@Sendable () async -> Void], isQuick: Bool)

    /// Ensures that no submitted work waits for other work.
    func wakeRest()
}

extension WorkerPool: AttemptExecutor {}

import ActionAPI
package import FileEvents
package import Logging
package import Monitoring
import PluginProtocol
package import Records
package import Rules
package import Running
import Synchronization
package import System
import Watching

/// Runs a rule for files that a user names, without watching anything.
///
/// It is a run of the engine whose watcher never sends a hint. Jobs of the rule that an earlier run has left may run
/// together with those of the files.
package final class ApplyRun: Sendable {
    private let engine: Engine
    private let isStopped = Atomic(false)

    /// The result of a run.
    package struct Summary: Sendable {
        /// The files with unfinished jobs.
        package var open: Set<PathBytes>
        /// The reason why the last changes are not stored.
        package var error: StorageError?
    }

    /// Creates a run for one rule.
    ///
    /// - Parameters:
    ///   - rule: The rule.
    ///   - limit: The maximum number of concurrent actions.
    ///   - store: The store of the jobs, which no other process uses.
    ///   - perform: Runs one action, as for the engine.
    ///   - log: The logger for messages of handlers and plugins.
    ///   - report: Called on the thread of the run, in order.
    package init(
        _ rule: Rule, limit: Int, store: any Journal,
        perform: @escaping EngineContext.Perform, log: Logger,
        report: @escaping @Sendable (EngineReport) -> Void
    ) {
        var options = EngineOptions(jobs: limit, isOnce: true)
        options.isWatching = false
        engine = Engine(
            ruleset: Ruleset([rule]), options: options, store: store, perform: perform, log: log, report: report)
    }

    /// Starts no more jobs, and ends ``run(_:)`` once the running ones are finished; callable from any thread.
    package func stop() {
        isStopped.store(true, ordering: .releasing)
        engine.stop()
    }

    /// Ends ``run(_:)`` and all actions immediately.
    package func stopAtOnce() { engine.stopAtOnce() }

    /// Runs until the jobs of all files are finished, or until stopped; blocks, and may be called once.
    ///
    /// Unfinished jobs stay in the store, for the engine.
    ///
    /// - Parameter requests: The files, each once.
    /// - Returns: The files with unfinished jobs.
    package func run(_ requests: [JobRequest]) -> Summary {
        var loop = EngineLoop(unwatched: engine)
        loop.carryOut(.apply(requests))
        while !loop.next(isLeasing: !isStopped.load(ordering: .acquiring)),
            !loop.isIdle || !loop.open(requests).isEmpty
        {
            engine.context.mailbox.wait(until: loop.nextWake)
        }
        let summary = Summary(open: loop.open(requests), error: loop.run.storeError)
        _ = loop.end()
        return summary
    }
}

extension Engine {
    /// Carries out a request for jobs without a run: nothing is watched, and no action starts.
    ///
    /// - Parameters:
    ///   - command: The request.
    ///   - ruleset: The rules of the jobs.
    ///   - store: The journal.
    ///   - undo: See ``Options/undo``.
    /// - Returns: Nil once it is committed.
    package static func carryOut(
        _ command: JobCommand, _ ruleset: Ruleset, in store: any Journal,
        undo: @escaping @Sendable (FileChange, FileEvent) -> String?
    ) -> StorageError? {
        var options = EngineOptions(jobs: 1, isOnce: true)
        options.isWatching = false
        options.undo = undo
        let log = Logger(label: "alight") { _ in SwiftLogNoOpLogHandler() }
        let engine = Engine(
            ruleset: ruleset, options: options, store: store, perform: { $1.map { _ in Outcome(.retry) } }, log: log,
            report: { _ in })
        var loop = EngineLoop(unwatched: engine)
        loop.carryOut(command)
        loop.persist()
        return loop.run.storeError
    }
}

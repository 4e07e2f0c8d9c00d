package import FileEvents
package import Logging
package import Monitoring
package import Records
package import Rules
package import Running
import Synchronization
package import System
package import Watching

/// Turns files into finished jobs: receives hints, lets paths settle, dispatches jobs, and persists their outcomes.
///
/// Everything happens on the thread that calls ``run()``, except watching and actions, which have their own threads.
package final class Engine: Sendable {
    let context: EngineContext
    /// The requests for due paths, which the engine's thread answers at the end of a turn.
    let dueRequests = Mutex<[@Sendable (borrowing EngineLoop) -> Void]>([])

    /// Creates an engine that is not running.
    ///
    /// - Parameters:
    ///   - ruleset: The rules, checked.
    ///   - options: Limits and modes.
    ///   - store: The ledger and the jobs, which no other process uses.
    ///   - perform: Runs one action for one or several events, and returns an outcome for each, in order; called on
    ///     threads that may block.
    ///   - log: The logger for messages of handlers and plugins.
    ///   - metrics: The metrics to update; nil for none.
    ///   - report: Called on the engine's thread, in order; it must not block for long.
    package init(
        ruleset: Ruleset, options: EngineOptions, store: any Journal,
        perform: @escaping EngineContext.Perform, log: Logger,
        metrics: EngineMetrics? = nil,
        report: @escaping @Sendable (EngineReport) -> Void
    ) {
        context = EngineContext(
            ruleset: ruleset, options: options, store: store, perform: perform, log: log,
            monitor: Monitor(metrics, on: options.host), report: report)
    }

    /// Runs until stopped, or with `isOnce` until everything is handled.
    ///
    /// Blocks; may be called once.
    ///
    /// - Throws: An error if a required root is missing, or if watching cannot start.
    package func run() throws(StartError) -> EngineSummary {
        var loop = try EngineLoop(self) { (scope, queue) throws(WatchError) in
            let watcher = try Watcher(scope: scope, queue: queue)
            context.monitor.attach(watcher)
            return watcher
        }
        defer { context.monitor.end() }
        repeat { context.mailbox.wait(until: loop.nextWake) } while !loop.next()
        return loop.end()
    }
}

// Requests from any thread; each takes effect in the next turn.
extension Engine {
    /// Finishes the jobs that run or could run, then ends ``run()``.
    package func stop() { context.mailbox.post(.stop) }

    /// Ends ``run()`` and all actions immediately.
    package func stopAtOnce() { context.mailbox.post(.stopAtOnce) }

    /// Lists all roots again and compares them with the ledger.
    package func rescan() { context.mailbox.post(.rescan) }

    /// Starts no more jobs of a rule, or of all with nil, until ``resume(_:)``, also in later runs.
    ///
    /// Paths continue to settle and to become due, and running actions finish. A pause of all rules and one by name
    /// are independent.
    package func pause(_ rule: String?) { context.mailbox.post(.pause(rule)) }

    /// Ends the pause of a rule; with nil all pauses.
    package func resume(_ rule: String?) { context.mailbox.post(.resume(rule)) }

    /// Carries out a request for jobs.
    ///
    /// - Parameters:
    ///   - command: The request.
    ///   - whenStored: Called on the engine's thread once it is committed, or if the store cannot be written.
    package func carryOut(_ command: JobCommand, whenStored: @escaping @Sendable () -> Void) {
        context.mailbox.post(.command(command, whenStored))
    }

    /// Runs other rules from now on, without an interruption of watching.
    ///
    /// Due paths stay due, and jobs with running actions finish under the rule with which they started. A rule that
    /// ran before compares its files with the ledger. A new rule starts as at the start of the program. If called
    /// several times in quick succession, the last call takes effect.
    package func reload(_ ruleset: Ruleset, ignored: [PathBytes] = []) {
        context.mailbox.post(.reload(ruleset, ignored: ignored))
    }

    package func status(at now: ContinuousClock.Instant) -> EngineStatus { context.monitor.status(at: now) }

    /// The activity of the last half hour, in intervals of five seconds.
    package func history(at now: ContinuousClock.Instant, wall: Timestamp) -> [ActivityHistory.Point] {
        context.monitor.history(at: now, wall: wall)
    }

    /// Returns the status of the watcher; nil if its thread does not answer in time.
    package func survey(within limit: Duration) -> WatchStatus? { context.monitor.survey(within: limit) }
}

/// The result of a run of the engine.
package struct EngineSummary: Sendable {
    package var succeeded: Int
    package var skipped: Int
    package var failed: Int
    /// The number of accepted jobs that were not finished when the engine stopped.
    package var unfinished: Int
    /// Whether a run with `isOnce` had no jobs, and the number of files that its rules know then.
    package var isIdle: Bool
    package var known: Int
    /// The paths that had not settled.
    package var unsettled: [PathBytes]
    /// The paths that were due at the end of a dry run.
    package var due: [DuePath]
    /// Whether everything was stopped immediately.
    package var isForced: Bool
    /// The first root that could not be watched, after a run that ended by itself; it has been reported.
    package var error: WatchError?
    /// The reason why the journal could not store the last changes.
    package var journalError: StorageError?
}

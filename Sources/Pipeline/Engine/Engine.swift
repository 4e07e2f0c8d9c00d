import FileEvents
package import FileWatching
package import Handling
package import Logging
package import Rules
import Settling
package import Storage
import Synchronization
package import System

/// Turns files into finished jobs: receives hints, lets paths settle, dispatches jobs, and persists what has become of them.
///
/// All of it happens on the thread that calls ``run()``, except the watching and the actions, which have threads of their
/// own.
package final class Engine: Sendable {
    package struct Options: Sendable {
        /// The number of slots: actions that may run programs at once, over all rules.
        package var jobs: Int
        /// The number of slots beyond that, for rules that have waited for one.
        package var extraJobs = 0
        /// Whether the run ends once existing files are handled.
        package var isOnce: Bool
        /// Paths of which no hint is received, nor of those that begin with one and a hyphen: the journal's own files.
        package var ignored: [PathBytes]
        /// The number of watches that the program has elsewhere, for messages about the limit.
        package var watchesBeside = 0
        /// The longest time between two reports ``EngineReport/alive``, once everything is watched; nil for none.
        package var signOfLife: Duration?
        /// Whether files are watched; otherwise only jobs run, and roots are not created.
        package var isWatching = true
        /// Whether nothing is changed: roots are not created, and rules do not pause.
        package var isDry = false
        /// The files and the clocks.
        package var host = Host.machine
        /// Runs actions; nil for threads of the engine's own.
        package var executor: (any AttemptExecutor)?
        package var clock = LocalClock.system
        /// How long a set of files may be incomplete before a warning reports it.
        package var patience = Duration.seconds(600)
        /// Whether an interrupted action finds its own work, whatever is at the path by now; nil if none can.
        package var hasWork: (@Sendable (Rule, Action, Job) -> Bool)?

        package init(jobs: Int, isOnce: Bool = false, ignored: [PathBytes] = []) {
            self.jobs = jobs
            self.isOnce = isOnce
            self.ignored = ignored
        }
    }

    let ruleset: Ruleset
    let options: Options
    let store: any EngineStore
    let perform: @Sendable (Action, [Invocation]) -> [Outcome]
    let log: Logger
    let report: @Sendable (EngineReport) -> Void
    let mailbox = Mailbox<Attempt.Result>()
    let monitor: Monitor
    let stopSignal = StopSignal()
    /// The requests for due paths that have no answer yet.
    let dueRequests = Mutex<[DuePathRequest]>([])
    let lastDuePaths = Mutex<[DuePath]>([])
    var host: Host { options.host }

    /// Creates an engine that does not run.
    ///
    /// - Parameters:
    ///   - ruleset: The rules, checked.
    ///   - options: Limits and modes.
    ///   - store: The ledger and the jobs; no other process has it.
    ///   - perform: Runs one action for one or several events, and returns an outcome for each, in order; called on threads
    ///     that may block.
    ///   - log: For messages of handlers and plugins.
    ///   - metrics: Counts what is done; nil for none.
    ///   - report: Called on the engine's thread, in order; it must not block for long.
    package init(
        ruleset: Ruleset, options: Options, store: any EngineStore,
        perform: @escaping @Sendable (Action, [Invocation]) -> [Outcome], log: Logger, metrics: EngineMetrics? = nil,
        report: @escaping @Sendable (EngineReport) -> Void
    ) {
        let monitor = Monitor(metrics, on: options.host)
        self.monitor = monitor
        self.ruleset = ruleset
        self.options = options
        self.store = store
        self.perform = perform
        self.log = log
        self.report = {
            monitor.note($0)
            report($0)
        }
    }

    /// Runs until stopped, or with `isOnce` until everything is handled.
    ///
    /// Blocks; call it once.
    ///
    /// - Throws: If a required root is missing, or if watching cannot start.
    package func run() throws(StartError) -> EngineSummary {
        var loop = try EngineLoop(self) { (scope, queue) throws(WatchError) in
            let watcher = try Watcher(scope: scope, queue: queue)
            monitor.begin(watcher)
            return watcher
        }
        defer { monitor.end() }
        repeat { mailbox.wait(until: loop.nextWake) } while !loop.next()
        if options.isDry { loop.keepDuePaths() }
        return loop.end()
    }
}

// Requests from any thread; each takes effect in the next turn.
extension Engine {
    /// Finishes the jobs that run or could run, then ends ``run()``.
    package func stop() { mailbox.post(.stop) }

    /// Ends ``run()`` and all actions at once.
    package func stopAtOnce() { mailbox.post(.stopAtOnce) }

    /// Lists all roots again and compares them with the ledger.
    package func rescan() { mailbox.post(.rescan) }

    /// Starts no more jobs of a rule, or of all with nil, until ``resume(_:)``, also in later runs.
    ///
    /// Paths go on to settle and to become due, and actions that run end. A pause of all and one of a name are independent.
    package func pause(_ rule: String?) { mailbox.post(.pause(rule)) }

    /// Ends the pause of a rule; with nil all pauses.
    package func resume(_ rule: String?) { mailbox.post(.resume(rule)) }

    /// Carries out a request for jobs.
    ///
    /// - Parameters:
    ///   - command: The request.
    ///   - whenKept: Called on the engine's thread once it is committed, or if the store cannot be written.
    package func carryOut(_ command: JobCommand, whenKept: @escaping @Sendable () -> Void) {
        mailbox.post(.command(command, whenKept))
    }

    /// Runs other rules from now on, without a gap in the watching.
    ///
    /// Due paths stay due, and jobs whose actions run end under the rule with which they started. A rule that ran before
    /// compares its files with the ledger; a rule that is new starts as at the start of the program. Of several calls in
    /// quick succession the last one holds.
    package func reload(_ ruleset: Ruleset, ignored: [PathBytes] = []) {
        mailbox.post(.reload(ruleset, ignored: ignored))
    }

    package func status(at now: ContinuousClock.Instant) -> EngineStatus { monitor.status(at: now) }

    /// The activity of the last half hour, in intervals of five seconds.
    package func history(at now: ContinuousClock.Instant, wall: Timestamp) -> [ActivityHistory.Point] {
        monitor.history(at: now, wall: wall)
    }

    /// The status of the watcher; nil if its thread does not answer in time.
    package func survey(within limit: Duration) -> WatchStatus? { monitor.survey(within: limit) }
}

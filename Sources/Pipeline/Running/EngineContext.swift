package import ActionAPI
package import FileEvents
package import Gates
package import Logging
package import Monitoring
package import Records
package import Rules
package import System

/// The parts of an engine that its stages share.
package final class EngineContext: Sendable {
    package let ruleset: Ruleset
    package let options: EngineOptions
    package let store: any Journal
    /// The outputs of the latest actions.
    package let chains = OutputChains()
    let outputClaims: DestinationClaims
    package let perform: Perform
    package let log: Logger
    package let report: @Sendable (EngineReport) -> Void
    package let mailbox = Mailbox()
    package let monitor: Monitor
    package let stopSignal = StopSignal()
    package var host: Host { options.host }
    /// The current time of both clocks.
    var times: (now: ContinuousClock.Instant, time: Timestamp) { (host.clock.now(), host.clock.time()) }

    /// Runs one action for several jobs, and returns one outcome for each, in order.
    package typealias Perform = @Sendable (Action, [Invocation]) async -> [Outcome]

    package init(
        ruleset: Ruleset, options: EngineOptions, store: any Journal, perform: @escaping Perform, log: Logger,
        monitor: Monitor, report: @escaping @Sendable (EngineReport) -> Void
    ) {
        (self.ruleset, self.options, self.monitor) = (ruleset, options, monitor)
        (self.perform, self.log) = (perform, log)
        self.store = store
        outputClaims = DestinationClaims(store, options.host)
        self.report = {
            monitor.record($0)
            report($0)
        }
    }
}

/// The limits and modes of an engine.
package struct EngineOptions: Sendable {
    /// The number of slots: actions that may run programs at the same time, over all rules.
    package var jobs: Int
    /// The number of additional slots for rules that have waited for one.
    package var extraJobs = 0
    /// Whether the run ends once existing files are handled.
    package var isOnce: Bool
    /// The journal's own files: no hints are received for these paths, or for those with a suffix that starts
    /// with a hyphen.
    package var ignored: [PathBytes]
    /// The number of watches that the program uses elsewhere, for messages about the limit.
    package var watchesBeside = 0
    /// The maximum time between two reports ``EngineReport/alive``, once everything is watched; nil for none.
    package var signOfLife: Duration?
    /// Whether files are watched; otherwise only jobs run, and roots are not created.
    package var isWatching = true
    /// Whether nothing is changed: roots are not created, and rules do not pause.
    package var isDry = false
    /// The files and the clocks.
    package var host = Host.machine
    /// The executor of actions; nil for the engine's own threads.
    package var executor: (any AttemptExecutor)?
    package var clock = LocalClock.system
    /// The time for which a set of files may be incomplete before a warning is reported.
    package var timeout = Duration.seconds(600)
    /// Whether an interrupted action finds its own output, whatever is at the path by now; nil if none can.
    package var hasWork: (@Sendable (Rule, Action, Job) -> Bool)?
    /// Undoes a change that a handler made for an event; returns why it could not, or nil.
    package var undo: @Sendable (FileChange, FileEvent) -> String? = { _, _ in "no handler can undo it" }

    package init(jobs: Int, isOnce: Bool = false, ignored: [PathBytes] = []) {
        self.jobs = jobs
        self.isOnce = isOnce
        self.ignored = ignored
    }
}

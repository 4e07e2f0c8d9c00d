package import FileEvents
import FileWatching
package import Handling
package import Journaling
package import Logging
package import Rules
package import Settling

/// Turns files into finished jobs: watches, settles, decides, dispatches, remembers.
///
/// The way of one event is three stages and two queues. Hints come out of
/// `FileWatching`, merged by path. The reconciler holds them until their paths have
/// settled, compares with the ledger, and commits jobs. The dispatcher leases
/// jobs from the journal, and records how they ended. What has to come again
/// enters at the front, as a hint or as a job with a due time.
///
/// All of it happens on the thread that calls ``run()``, except the watching and
/// the actions, which have threads of their own.
package final class Engine: Sendable {
    package struct Options: Sendable {
        /// The number of slots: actions that may run programs at once, over all rules.
        package var jobs: Int
        /// The number of slots beyond that, for rules that have waited for one.
        package var extraJobs = 0
        /// Handle what is there, then end.
        package var isOnce: Bool
        /// Paths of which nothing is told, nor of those that begin with one and a hyphen: the journal's own files.
        package var ignored: [PathBytes]
        /// How many watches the program holds elsewhere, for what is said of the limit.
        package var watchesBeside = 0

        /// How often ``EngineReport/alive`` is reported at least, from the first turn in which everything is watched; nil
        /// for never.
        package var signOfLife: Duration?

        /// Change nothing: what actions do is the affair of those who perform them, and no roots are made.
        package var isDry = false
        /// Where the files are, and the clocks.
        package var host = Host.machine
        /// What runs actions; nil for threads of the engine's own.
        package var executor: (any AttemptExecutor)?
        /// What local time is.
        package var clock = LocalClock.system
        /// How long a set of files may be incomplete before a warning tells of it.
        package var patience = Duration.seconds(600)

        package init(jobs: Int, isOnce: Bool = false, ignored: [PathBytes] = []) {
            self.jobs = jobs
            self.isOnce = isOnce
            self.ignored = ignored
        }
    }

    let ruleset: Ruleset
    let options: Options
    let journal: any Journal
    let perform: @Sendable (Action, [Invocation]) -> [Outcome]
    let log: Logger
    let report: @Sendable (EngineReport) -> Void
    let mailbox = Mailbox<Attempt.Result>()
    let monitor: Monitor
    let stopSignal = StopSignal()
    var host: Host { options.host }

    /// Makes an engine that is not running.
    ///
    /// - Parameters:
    ///   - ruleset: The rules, checked.
    ///   - options: Bounds and the way to run.
    ///   - journal: Where jobs and the ledger live.
    ///   - perform: Does one action, for several events in a batch, and has an outcome for each of them in order;
    ///     called on threads that may block.
    ///   - log: For what handlers and plugins say.
    ///   - metrics: Counts what is done; nil for nobody.
    ///   - report: Called on the engine's thread, in order; it must not block for long.
    package init(
        ruleset: Ruleset, options: Options, journal: any Journal,
        perform: @escaping @Sendable (Action, [Invocation]) -> [Outcome], log: Logger, metrics: EngineMetrics? = nil,
        report: @escaping @Sendable (EngineReport) -> Void
    ) {
        let monitor = Monitor(metrics, on: options.host)
        self.monitor = monitor
        self.ruleset = ruleset
        self.options = options
        self.journal = journal
        self.perform = perform
        self.log = log
        self.report = { told in
            monitor.note(told)
            report(told)
        }
    }

    /// Finishes the jobs that are accepted, then ends ``run()``.
    ///
    /// Callable from any thread.
    package func stop() { mailbox.post(.stop) }

    /// Ends ``run()`` and all actions at once.
    package func stopAtOnce() { mailbox.post(.stopAtOnce) }

    /// Compares everything with the ledger again.
    package func rescan() { mailbox.post(.rescan) }

    /// Lets others see in the journal's file what was noted until now, unless that can't be written at present.
    package func catchUp() { journal.catchUp(at: host.clock.time()) }

    /// Runs other rules from now on, without an end of the watching.
    ///
    /// What both sets of rules ask for is watched all the time, and what waits goes on
    /// waiting. Jobs whose actions run end under the rule with which they began. A rule that
    /// ran before compares with what it knows, so that it is told of everything once;
    /// what it takes since the change is news only if it happens from now on. Of several calls that come close
    /// together the last one holds.
    ///
    /// - Parameters:
    ///   - ruleset: The rules, checked.
    ///   - ignored: As in ``Options/ignored``.
    package func reload(_ ruleset: Ruleset, ignored: [PathBytes] = []) {
        mailbox.post(.reload(ruleset, ignored: ignored))
    }

    /// Runs until stopped, or with `isOnce` until everything is handled.
    ///
    /// Blocks; call it once.
    ///
    /// - Throws: When a root is missing that has to be there, or watching can't begin at all.
    package func run() throws(StartError) -> EngineSummary {
        var turns = try EngineTurns(self) { (scope, queue) throws(WatchError) in
            let watcher = try Watcher(scope: scope, queue: queue)
            monitor.begin(watcher)
            return watcher
        }
        defer { monitor.end() }
        repeat { mailbox.wait(until: turns.nextWake) } while !turns.next()
        return turns.end()
    }

    /// What has to be watched for the rules.
    func scope(of ruleset: Ruleset, _ authors: AuthorSource) -> WatchScope {
        var scope = ruleset.scope
        scope.recorder = ruleset.needsAuthors ? authors.recorder : nil
        scope.watchesBeside = options.watchesBeside
        return scope
    }
}

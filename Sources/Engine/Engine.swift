package import FileEvents
import FileWatching
package import Handling
package import Journaling
package import Logging
import Reconciling
package import Rules
import Settling

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
    private let perform: @Sendable (Action, [Invocation]) -> [Outcome]
    let log: Logger
    let report: @Sendable (EngineReport) -> Void
    let mailbox = Mailbox()
    let monitor: Monitor
    let stopSignal = StopSignal()

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
        let monitor = Monitor(metrics)
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
    package func catchUp() { journal.catchUp(at: DiskProbe.now()) }

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
        try ruleset.prepareRoots(isDry: options.isDry)
        let queue = HintQueue { [mailbox] in mailbox.wake() }
        var authors = AuthorSource.none
        listen(for: ruleset, &authors)
        let watcher: Watcher
        do {
            watcher = try Watcher(scope: scope(of: ruleset, authors), queue: queue)
        } catch {
            throw .watching(error)
        }
        monitor.begin(watcher)
        monitor.note(ruleset)
        defer {
            monitor.end()
            watcher.stop()
        }

        let (views, reselected) = ruleset.views(beginning: journal, isOnce: options.isOnce)
        var reconciler = Reconciler(views: views, ledger: journal, isPatient: !options.isOnce) { [report] in
            report(.remark($0))
        }
        for (rule, jobs) in journal.waiting.sorted(by: { $0.key < $1.key }) { report(.waiting(rule: rule, jobs: jobs)) }
        let away = journal.mounts.filter(\.isAway)
        reconciler.noteAway(away.map(\.point))
        noteMounts(of: ruleset, keeping: away)
        var dispatcher = Dispatcher(
            ruleset: ruleset, journal: journal, mailbox: mailbox, limit: options.jobs, extra: options.extraJobs,
            isSerial: options.isDry, isPatient: !options.isOnce, clock: options.clock, patience: options.patience,
            perform: perform, stop: stopSignal, log: log, monitor: monitor, report: report)
        restorePauses(&dispatcher)
        var state = RunState(ignored: options.ignored, reselected: reselected, authors: authors)
        var now = ContinuousClock.now
        var late: [Hint] = []
        // That the rules have begun is kept before they are said to be ready: what comes from then on is news to the
        // next run as well.
        keep(&dispatcher, &state, at: now)

        while true {
            let messages = mailbox.take(
                until: nextWake(reconciler.nextDeadline, dispatcher.nextDeadline(after: now), state, after: now))
            dispatcher.wakeRest()
            var batch = queue.take()
            now = ContinuousClock.now
            var waiting: [@Sendable () -> Void] = []
            for message in messages {
                switch message {
                case .ended(let result):
                    let (rule, returned) = dispatcher.end(result, at: now)
                    guard let view = dispatcher.ruleset.index(of: rule) else { continue }
                    for job in returned { reconciler.addReturned(job.event, view: view, at: now) }
                    for part in result.parts { reconciler.addTaken(part.job.event.path, view: view, at: now) }
                case .advanced(let job, let steps): journal.note(steps, of: job)
                case .rescan:
                    monitor.noteRescan(.asked)
                    watcher.rescan()
                case .pause(let rule): change(rule, isPause: true, &dispatcher)
                case .resume(let rule): change(rule, isPause: false, &dispatcher)
                case .command(let command, let whenKept):
                    command.carryOut(dispatcher.ruleset, in: journal, at: now)
                    waiting.append(whenKept)
                case .reload(let ruleset, let ignored): prepare(ruleset, ignored: ignored, watcher, &state)
                case .stop: begin(.draining, &state, now)
                case .stopAtOnce:
                    begin(.ending, &state, now)
                    state.limit = now + Self.endAtOnceLimit
                    state.isForced = true
                }
            }
            if batch.reports.contains(where: \.isOfMount) {
                noteMounts(of: dispatcher.ruleset, keeping: journal.mounts.filter(\.isAway))
            }
            if state.phase == .running {
                while let (next, earlier) = takeNext(&state, &batch.reports) {
                    reconciler.take(HintQueue.Batch(hints: [], reports: earlier), at: now)
                    for watching in earlier { take(watching, dispatcher.ruleset, &state) }
                    settle(&reconciler, watcher, state.authors, &dispatcher, at: now)
                    change(to: next, &reconciler, &dispatcher, &state, at: now)
                }
                reconciler.take(batch.leaving(state.ignored), at: now)
                dispatcher.note(batch.hints, at: now)
                for watching in batch.reports where state.fault == nil { take(watching, dispatcher.ruleset, &state) }
                settle(&reconciler, watcher, state.authors, &dispatcher, at: now)
                if state.isReady, !state.hasStarted {
                    for rule in state.reselected { rule.forgetOthers(in: journal, at: now) }
                    journal.noteStarted(at: DiskProbe.now())
                    state.hasStarted = true
                }
            } else {
                late += batch.leaving(state.ignored).hints
            }
            if state.phase == .draining, let limit = state.limit, limit <= now { begin(.ending, &state, now) }
            if state.phase != .ending, state.journalFault == nil {
                // Nobody waits for more where nothing more is waited for.
                let isLast = options.isOnce && state.isReady && reconciler.isEmpty
                dispatcher.fill(at: now, isGathering: state.phase == .running && !isLast)
            }
            keep(&dispatcher, &state, at: now)
            for whenKept in waiting { whenKept() }
            monitor.noteTurn(
                state.phase.status, isReady: state.isReady, hints: batch.hints.count, settling: reconciler.settling,
                held: reconciler.held,
                queue: journal.counts, pauses: dispatcher.pauses, slots: dispatcher.lanes.status, at: now)
            if let interval = options.signOfLife, state.isReady, state.nextSign.map({ $0 <= now }) ?? true {
                state.nextSign = now + interval
                report(.alive)
            }
            if isDone(state, isSettled: reconciler.isEmpty, running: dispatcher.running, now) { break }
        }
        // What the kernel told until now, and nobody looked at.
        watcher.stop()
        late += queue.take().leaving(state.ignored).hints
        return summary(state, unsettled: reconciler.unsettled(and: late))
    }

    /// What has to be watched for the rules.
    func scope(of ruleset: Ruleset, _ authors: AuthorSource) -> WatchScope {
        var scope = ruleset.scope
        scope.recorder = ruleset.needsAuthors ? authors.recorder : nil
        scope.watchesBeside = options.watchesBeside
        return scope
    }
}

extension WatchReport {
    /// Whether a file system came.
    fileprivate var isOfMount: Bool {
        if case .mounted = self { true } else { false }
    }
}

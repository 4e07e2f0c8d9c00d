package import FileEvents
package import FileWatching
import Handling
import Journaling
import Reconciling
import Rules
import Settling

/// A run of an engine, turn by turn.
///
/// A turn takes what the watcher, the actions and other threads have to say, lets paths settle, leases and begins jobs,
/// and has the journal keep all of it. Nothing in it waits but for the disk: between two turns the owner sleeps until
/// ``nextWake``. It belongs to one thread.
package struct EngineTurns: ~Copyable {
    private let engine: Engine
    private let watcher: any HintProducer
    private let queue: HintQueue
    private var reconciler: Reconciler
    private var dispatcher: Dispatcher
    private var state: Engine.RunState
    private var now: ContinuousClock.Instant
    /// Hints that arrived after a stop was requested.
    private var late: [Hint] = []

    private var journal: any Journal { engine.journal }
    private var options: Engine.Options { engine.options }

    /// Begins a run: has the roots watched, and reads what an earlier run has left.
    ///
    /// - Parameters:
    ///   - engine: What is run, once.
    ///   - watch: Makes what fills the queue for a scope.
    /// - Throws: When a root is missing that has to be there, or watching can't begin at all.
    package init(
        _ engine: Engine, watching watch: (WatchScope, HintQueue) throws(WatchError) -> any HintProducer
    ) throws(StartError) {
        let (ruleset, options, journal, host) = (engine.ruleset, engine.options, engine.journal, engine.host)
        try ruleset.prepareRoots(isDry: options.isDry, in: host.fileSystem)
        let queue = HintQueue { [mailbox = engine.mailbox] in mailbox.wake() }
        var authors = Engine.AuthorSource.none
        engine.listen(for: ruleset, &authors)
        let watcher: any HintProducer
        do {
            watcher = try watch(engine.scope(of: ruleset, authors), queue)
        } catch {
            throw .watching(error)
        }
        engine.monitor.note(ruleset)

        let (views, reselected) = ruleset.views(beginning: journal, isOnce: options.isOnce, host.clock)
        var reconciler = Reconciler(views: views, ledger: journal, isPatient: !options.isOnce, on: host) {
            [report = engine.report] in report(.remark($0))
        }
        for (rule, jobs) in journal.waiting.sorted(by: { $0.key < $1.key }) {
            engine.report(.waiting(rule: rule, jobs: jobs))
        }
        let away = engine.away
        reconciler.noteAway(away.map(\.point))
        engine.noteMounts(of: ruleset, keeping: away)
        var dispatcher = Dispatcher(
            ruleset: ruleset, journal: journal, mailbox: engine.mailbox, limit: options.jobs,
            extra: options.extraJobs, isSerial: options.isDry, isPatient: !options.isOnce, host: host,
            clock: options.clock, patience: options.patience, executor: options.executor, perform: engine.perform,
            stop: engine.stopSignal, log: engine.log, monitor: engine.monitor, report: engine.report)
        engine.restorePauses(&dispatcher)
        var state = Engine.RunState(ignored: options.ignored, reselected: reselected, authors: authors)
        let now = host.clock.now()
        // That the rules have begun is kept before they are said to be ready: what comes from then on is news to the
        // next run as well.
        engine.keep(&dispatcher, &state, at: now)
        self.engine = engine
        self.watcher = watcher
        self.queue = queue
        self.reconciler = reconciler
        self.dispatcher = dispatcher
        self.state = state
        self.now = now
    }

    /// When the next turn has to be, at the latest; nil if only a message or a hint needs one.
    package var nextWake: ContinuousClock.Instant? {
        engine.nextWake(reconciler.nextDeadline, dispatcher.nextDeadline(after: now), state, after: now)
    }

    /// Whether any path has not settled yet.
    package var isSettling: Bool { !reconciler.isEmpty }

    /// Whether the path has not settled yet.
    package func isSettling(_ path: PathBytes) -> Bool { reconciler.isSettling(path) }

    /// Does the next turn.
    ///
    /// - Parameter isLeasing: Whether actions may begin.
    /// - Returns: Whether the run is over.
    package mutating func next(isLeasing: Bool = true) -> Bool {
        let messages = engine.mailbox.take()
        dispatcher.wakeRest()
        var batch = queue.take()
        now = engine.host.clock.now()
        let waiting = take(messages)
        if batch.reports.contains(where: \.isOfMount) {
            engine.noteMounts(of: dispatcher.ruleset, keeping: engine.away)
        }
        if state.phase == .running {
            take(&batch)
        } else {
            late += batch.leaving(state.ignored).hints
        }
        if state.phase == .draining, let limit = state.limit, limit <= now { engine.begin(.ending, &state, now) }
        if isLeasing, state.phase != .ending, state.journalFault == nil {
            // Nobody waits for more where nothing more is waited for.
            let isLast = options.isOnce && state.isReady && reconciler.isEmpty
            dispatcher.fill(at: now, isGathering: state.phase == .running && !isLast)
        }
        engine.keep(&dispatcher, &state, at: now)
        for whenKept in waiting { whenKept() }
        engine.monitor.noteTurn(
            state.phase.status, isReady: state.isReady, hints: batch.hints.count, settling: reconciler.settling,
            held: reconciler.held, queue: journal.counts, pauses: dispatcher.pauses, slots: dispatcher.lanes.status,
            at: now)
        if let interval = options.signOfLife, state.isReady, state.nextSign.map({ $0 <= now }) ?? true {
            state.nextSign = now + interval
            engine.report(.alive)
        }
        return engine.isDone(state, isSettled: reconciler.isEmpty, running: dispatcher.running, now)
    }

    /// Ends the watching.
    ///
    /// - Returns: How the run went.
    package mutating func end() -> EngineSummary {
        // Includes the hints that have arrived until now.
        watcher.stop()
        late += queue.take().leaving(state.ignored).hints
        return engine.summary(state, unsettled: reconciler.unsettled(and: late))
    }

    /// Takes what other threads have sent.
    ///
    /// - Returns: What is to be called when the journal has it.
    private mutating func take(_ messages: [Mailbox<Attempt.Result>.Message]) -> [@Sendable () -> Void] {
        var waiting: [@Sendable () -> Void] = []
        for message in messages {
            switch message {
            case .ended(let result):
                let (rule, returned) = dispatcher.end(result, at: now)
                guard let view = dispatcher.ruleset.index(of: rule) else { continue }
                for job in returned { reconciler.addReturned(job.event, view: view, at: now) }
                for part in result.parts { reconciler.addTaken(part.job.event.path, view: view, at: now) }
            case .advanced(let job, let steps): journal.note(steps, of: job)
            case .declared: break
            case .rescan:
                engine.monitor.noteRescan(.asked)
                watcher.rescan()
            case .pause(let rule): engine.change(rule, isPause: true, &dispatcher)
            case .resume(let rule): engine.change(rule, isPause: false, &dispatcher)
            case .command(let command, let whenKept):
                command.carryOut(dispatcher.ruleset, in: journal, on: engine.host, at: now)
                waiting.append(whenKept)
            case .reload(let ruleset, let ignored): engine.prepare(ruleset, ignored: ignored, watcher, &state)
            case .stop: engine.begin(.draining, &state, now)
            case .stopAtOnce:
                engine.begin(.ending, &state, now)
                state.limit = now + Engine.endAtOnceLimit
                state.isForced = true
            }
        }
        return waiting
    }

    /// Takes what the watcher has found, and lets it settle.
    private mutating func take(_ batch: inout HintQueue.Batch) {
        while let (next, earlier) = engine.takeNext(&state, &batch.reports) {
            reconciler.take(HintQueue.Batch(hints: [], reports: earlier), at: now)
            for watching in earlier { engine.take(watching, dispatcher.ruleset, &state) }
            engine.settle(&reconciler, watcher, state.authors, &dispatcher, at: now)
            engine.change(to: next, &reconciler, &dispatcher, &state, at: now)
        }
        reconciler.take(batch.leaving(state.ignored), at: now)
        dispatcher.note(batch.hints, at: now)
        for watching in batch.reports where state.fault == nil { engine.take(watching, dispatcher.ruleset, &state) }
        engine.settle(&reconciler, watcher, state.authors, &dispatcher, at: now)
        if state.isReady, !state.hasStarted {
            for rule in state.reselected { rule.forgetOthers(in: journal, at: now) }
            journal.noteStarted(at: engine.host.clock.time())
            state.hasStarted = true
        }
    }
}

extension WatchReport {
    /// Whether a file system came.
    fileprivate var isOfMount: Bool {
        if case .mounted = self { true } else { false }
    }
}

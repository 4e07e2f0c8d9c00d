import FileEvents
package import Reconciling
import Rules
import Settling
package import Storage
package import System
package import Watching

/// A run of an engine, turn by turn.
///
/// A turn receives hints, results and requests, lets paths settle, dispatches jobs, and persists all of it in one
/// commit. It waits for nothing but disks: between two turns the owner sleeps until ``nextWake``. It belongs to one
/// thread.
package struct EngineLoop: ~Copyable {
    let engine: Engine
    let watcher: any HintProducer
    private let hints: HintQueue
    let conditions: Conditions
    var reconciler: Reconciler
    var dispatcher: Dispatcher
    var run: RunState
    var now: ContinuousClock.Instant
    /// Hints that arrived after a stop was requested.
    private var late: [Hint] = []

    /// Starts a run: starts to watch the roots, and restores the state that an earlier run has left.
    ///
    /// - Parameters:
    ///   - engine: The engine, which runs once.
    ///   - watch: Creates the producer of hints for a scope.
    /// - Throws: An error if a required root is missing, or if watching cannot start.
    package init(
        _ engine: Engine, watching watch: (WatchScope, HintQueue) throws(WatchError) -> any HintProducer
    ) throws(StartError) {
        let (ruleset, options, host) = (engine.ruleset, engine.options, engine.host)
        if options.isWatching { try ruleset.prepareRoots(isDry: options.isDry, in: host.fileSystem) }
        let queue = HintQueue { [mailbox = engine.mailbox] in mailbox.wake() }
        let conditions = Conditions(ruleset, log: engine.log, hasWork: options.hasWork)
        if ruleset.needsAuthors, !options.isOnce { conditions.listen(engine.report) }
        let watcher: any HintProducer
        do {
            watcher = try watch(conditions.scope(watchesBeside: options.watchesBeside), queue)
        } catch {
            throw .watching(error)
        }
        engine.monitor.note(ruleset)
        let start = RuleStarts(ruleset, engine.store, options, on: host)
        let reconciler = Reconciler(
            views: start.views, ledger: engine.store, isPatient: !options.isOnce, on: host,
            admits: { conditions.admit($1, rule: $0) }, hasWork: { conditions.hasWork($1.number) },
            writer: { conditions.writer(of: $1, rule: $0) },
            warn: { [report = engine.report] in report(.remark($0)) })
        let stored = engine.store.stored
        self.engine = engine
        self.watcher = watcher
        hints = queue
        self.conditions = conditions
        self.reconciler = reconciler
        dispatcher = Dispatcher(engine, start.rules)
        run = RunState(ignored: options.ignored)
        run.reselected = start.reselected
        now = host.clock.now()
        takeOver(stored)
    }

    /// Restores the state that an earlier run has left, and commits the start.
    private mutating func takeOver(_ stored: StoredState) {
        for (rule, jobs) in stored.unloaded.sorted(by: { $0.key < $1.key }) {
            engine.report(.waiting(rule: rule, jobs: jobs))
        }
        if engine.options.isWatching { recordMounts(stored.mounts) }
        restorePauses(stored.pauses)
        restore()
        // The start of the rules is committed before they are reported as ready: later changes are then also events
        // for the next run.
        persist()
        reconciler.closeDirectories()
    }

    /// The latest time of the next turn; nil if only a message or a hint requires one.
    package var nextWake: ContinuousClock.Instant? {
        let settled = run.phase == .running ? reconciler.nextDeadline : nil
        let others = [run.limit, run.storeRetry, run.nextSign, dispatcher.nextDeadline(after: now, reconciler)]
        return ([settled] + others).compactMap(\.self).min()
    }

    /// Whether any path has not settled.
    package var isSettling: Bool { !reconciler.isSettled }

    package func isSettling(_ path: PathBytes) -> Bool { reconciler.isSettling(path) }

    /// Runs the next turn.
    ///
    /// - Parameter isLeasing: Whether actions may start.
    /// - Returns: Whether the run is over.
    package mutating func next(isLeasing: Bool = true) -> Bool {
        let (received, waiting) = receive()
        if conditions.asksForWork { conditions.interrupted = dispatcher.interrupted(reconciler) }
        settle()
        if isLeasing { dispatch() }
        persist()
        answerDueRequests()
        reconciler.closeDirectories()
        conditions.forgetContents()
        for whenStored in waiting { whenStored() }
        recordTurn(hints: received)
        return isDone
    }

    // MARK: Receive

    /// Receives messages of other threads: hints first, so that an outcome is recorded after all earlier hints.
    ///
    /// - Returns: The number of hints, and the closures to call once the turn is committed.
    private mutating func receive() -> (hints: Int, waiting: [@Sendable () -> Void]) {
        let messages = engine.mailbox.take()
        dispatcher.wakeRest()
        // An outcome is recorded after all earlier events.
        if messages.contains(where: \.isOutcome) { watcher.drain() }
        var batch = hints.take()
        now = engine.host.clock.now()
        if batch.reports.contains(where: \.isOfMount) {
            recordMounts(dispatcher.changes.mounts ?? engine.store.stored.mounts)
        }
        if run.phase == .running {
            receive(&batch)
        } else {
            late += batch.leaving(run.ignored).hints
        }
        var waiting: [@Sendable () -> Void] = []
        for message in messages {
            switch message {
            case .ended(let result): dispatcher.record(result, &reconciler, at: now)
            case .advanced(let job, let steps, let outputs):
                dispatcher.record(steps, writing: outputs, of: job, &reconciler)
            case .declared(let job, let path): dispatcher.declare(path, of: job, &reconciler)
            case .rescan:
                engine.monitor.noteRescan(.asked)
                watcher.rescan()
            case .pause(let rule): changePauses { $0.pause(rule) }
            case .resume(let rule): changePauses { $0.resume(rule) }
            case .command(let command, let whenStored):
                carryOut(command)
                waiting.append(whenStored)
            case .reload(let ruleset, let ignored): prepare(ruleset, ignored: ignored)
            case .stop: enter(.draining)
            case .stopAtOnce:
                enter(.ending)
                run.limit = now + Self.endAtOnceLimit
                run.isForced = true
            }
        }
        return (batch.hints.count, waiting)
    }

    private mutating func receive(_ batch: inout HintQueue.Batch) {
        while let (next, earlier) = nextRules(&batch.reports) {
            reconciler.receive(HintQueue.Batch(hints: [], reports: earlier), at: now)
            for report in earlier { take(report) }
            settle()
            change(to: next)
        }
        reconciler.receive(batch.leaving(run.ignored), at: now)
        for hint in batch.hints { reconciler.wake(ReadyGate.gate(hint.path)) }
        for report in batch.reports where run.fault == nil { take(report) }
    }

    private mutating func take(_ watching: WatchReport) {
        switch watching {
        case .ready(let directories):
            run.isReady = true
            let rules = dispatcher.ruleset.rules.count
            engine.report(
                run.reloads == 0
                    ? .ready(folders: directories, rules: rules) : .reloaded(folders: directories, rules: rules))
        case .failure(let error) where !run.isReady && run.reloads == 0 && isFatal(error):
            // A rule that cannot be watched from the start would never run and never report it.
            run.fault = error
            run.phase = .draining
        default: engine.report(.watching(watching))
        }
    }

    private func isFatal(_ error: WatchError) -> Bool {
        switch error {
        case .notFolder(let path), .refused(let path, _): dispatcher.ruleset.roots.contains(path)
        }
    }

    // MARK: Settle

    private mutating func settle() {
        if run.phase == .running { reconciler.settle(at: now) }
        watcher.hintAgain(reconciler.shared.doubted)
        reconciler.shared.doubted = []
        if reconciler.mayFreeze {
            drain()
            reconciler.freezeDue()
        }
        freeze()
        recordAccepted()
        dispatcher.stop(reconciler.shared.overtaken)
        reconciler.shared.overtaken = []
        if run.isReady, !run.hasStarted {
            for index in run.reselected { forgetUnmatched(index) }
            dispatcher.changes.hasStarted = true
            run.hasStarted = true
        }
    }

    /// Receives all hints that the kernel has queued, since events are computed after them.
    private mutating func drain() {
        guard run.phase == .running else { return }
        watcher.drain()
        var batch = hints.take()
        receive(&batch)
    }

    /// Reports events for which paths have become due, and counts them for batches and sets.
    private mutating func recordAccepted() {
        let accepted = reconciler.shared.accepted
        guard !accepted.isEmpty else { return }
        reconciler.shared.accepted = []
        let rules = dispatcher.ruleset.rules
        engine.monitor.noteEvents(
            accepted.map(\.event), accepted.map { (rules[$0.view].name, $0.event) }, at: now)
        for (view, event) in accepted {
            dispatcher.rules[view].batch?.note(event.path, at: now)
            if rules[view].group != nil { reconciler.wake(dispatcher.groupGate(of: event.path, rules[view])) }
        }
    }

    /// Turns events that are not compared with the ledger into jobs.
    private mutating func freeze() {
        let frozen = reconciler.shared.frozen
        guard !frozen.isEmpty else { return }
        reconciler.shared.frozen = []
        let rules = dispatcher.ruleset.rules
        engine.monitor.noteEvents(frozen.map(\.event), frozen.map { (rules[$0.view].name, $0.event) }, at: now)
        for (view, event, isUncertain) in frozen {
            // The end of a listing follows the paths that it found.
            let after = event.kind == .scanEnded ? reconciler.views[view].lastDuePosition : 0
            dispatcher.freeze(event, view, isInterrupted: isUncertain, after: after, at: now)
            dispatcher.rules[view].batch?.note(event.path, at: now)
        }
    }

    /// Deletes the ledger rows of paths that the rule no longer matches.
    private mutating func forgetUnmatched(_ index: Int) {
        let rule = dispatcher.rules[index].rule
        var unmatched: [PathBytes] = []
        reconciler.shared.ledger.visit(dispatcher.rules[index].id, inside: "/") { path, _ in
            if rule.root(taking: path) == nil { unmatched.append(path) }
        }
        for path in unmatched { reconciler.views[index].forget(path) }
    }

    // MARK: Dispatch

    private mutating func dispatch() {
        for index in dispatcher.active(reconciler) {
            dispatcher.rules[index].frozen.advance(to: now)
            dispatcher.closeBatch(index, reconciler)
        }
        guard run.phase != .ending, run.storeFault == nil, dispatcher.hasWork(reconciler) else { return }
        drain()
        // No batch waits for more files if none are expected.
        let isLast = engine.options.isOnce && run.isReady && reconciler.isSettled
        let isGathering = run.phase == .running && !isLast
        dispatcher.fill(&reconciler, at: now, isGathering: isGathering)
        // A move that has not settled is frozen only here; its row and its job belong to one commit.
        guard !reconciler.shared.frozen.isEmpty else { return }
        freeze()
        dispatcher.fill(&reconciler, at: now, isGathering: isGathering)
    }

    // MARK: Persist

    /// Commits the changes of the turn, and starts the leased actions.
    ///
    /// While the store cannot be written, nothing is leased and no action starts; changes stay in memory.
    mutating func persist() {
        let isPausing = run.storeRetry.map { $0 > now } ?? false
        // The attempts prepare their actions during the commit.
        if !isPausing { dispatcher.submit() }
        // Collected before the rules can change, since reports refer to them by index.
        dispatcher.collectJobs(&reconciler)
        guard !isPausing else { return }
        let changes = dispatcher.changes(of: reconciler)
        let fault = engine.store.commit(changes, at: ClockPair(engine.host.clock.time(), now))
        if let fault {
            if run.storeFault != fault { engine.report(.journal(fault)) }
            run.storeFault = fault
            run.storeRetry = now + Self.storePause
            if !fault.mayPass { enter(.ending) }
            return
        }
        reconciler.markCommitted()
        reconciler.shared.dueChanges = [:]
        dispatcher.changes = TurnChanges()
        dispatcher.newJobs = []
        dispatcher.forgetIdle()
        restoreReturned()
        run.storeRetry = nil
        if run.storeFault != nil {
            engine.report(.journal(nil))
            run.storeFault = nil
            // Nothing was leased in this turn, and paths that have long been due cause no wake-up.
            run.storeRetry = now
        }
        dispatcher.launch()
    }

    // MARK: End

    private var isDone: Bool {
        let running = dispatcher.runningCount
        switch run.phase {
        case .running:
            guard engine.options.isOnce, run.isReady, reconciler.isSettled, running == 0 else { return false }
            return dispatcher.rules.indices.allSatisfy { isHandled($0) }
        case .draining:
            return running == 0 && (run.storeRetry == nil && !dispatcher.hasGivenUp || run.storeFault != nil)
        case .ending:
            return running == 0 || run.limit.map { $0 <= now } ?? false
        }
    }

    /// Whether everything of a rule is handled, except jobs that wait for their window or for other files.
    private func isHandled(_ index: Int) -> Bool {
        let state = dispatcher.rules[index]
        return state.frozen.all.allSatisfy { $0.job.waiting.map { !$0.cause.passesSoon } ?? false }
            && state.jobs.isEmpty && reconciler.views[index].dueCount == reconciler.views[index].heldCount
    }

    private mutating func recordTurn(hints: Int) {
        engine.monitor.noteTurn(
            run.phase, isReady: run.isReady, hints: hints, settling: reconciler.settling, held: reconciler.held,
            queue: dispatcher.jobCounts(reconciler), pauses: dispatcher.pauses, slots: dispatcher.lanes.status,
            pending: dispatcher.pendingCounts(reconciler), at: now)
        if let interval = engine.options.signOfLife, run.isReady, run.nextSign.map({ $0 <= now }) ?? true {
            run.nextSign = now + interval
            engine.report(.alive)
        }
    }

    /// Stops watching, and returns the summary.
    package mutating func end() -> EngineSummary {
        watcher.stop()
        dispatcher.refuse()
        late += hints.take().leaving(run.ignored).hints
        let counts = dispatcher.jobCounts(reconciler)
        return EngineSummary(
            succeeded: counts.succeeded, skipped: counts.skipped, failed: counts.failed, unfinished: counts.open,
            unsettled: reconciler.unsettled(and: late), isForced: run.isForced, fault: run.fault,
            journalFault: run.storeFault)
    }
}

extension Mailbox.Message {
    fileprivate var isOutcome: Bool { if case .ended = self { true } else { false } }
}

extension WatchReport {
    /// Whether a file system was mounted.
    fileprivate var isOfMount: Bool {
        if case .mounted = self { true } else { false }
    }
}

// Queries for simulations.
extension EngineLoop {
    package var counts: JobCounts { dispatcher.jobCounts(reconciler) }

    /// Returns the ledger row of a path; nil if there is no such rule.
    package func row(of rule: String, at path: PathBytes) -> LedgerRow? {
        dispatcher.ruleset.index(of: rule).map { reconciler.shared.ledger.row(of: dispatcher.rules[$0].id, at: path) }
    }

    package func visit(_ rule: String, inside directory: PathBytes, _ body: (PathBytes, LedgerRow) -> Void) {
        guard let index = dispatcher.ruleset.index(of: rule) else { return }
        reconciler.shared.ledger.visit(dispatcher.rules[index].id, inside: directory, body)
    }

    /// The paths of jobs whose event is only a change made by their own program.
    package var repeats: [(rule: String, paths: [PathBytes])] {
        dispatcher.rules.indices.flatMap { index in
            reconciler.views[index].sortedOffers.filter(\.isRepeat).map { (dispatcher.rules[index].rule.name, $0.paths) }
        }
    }

    /// Whether a path has an unfinished job of the rule, or is due.
    package func isDue(_ path: PathBytes, for rule: String) -> Bool {
        guard let index = dispatcher.ruleset.index(of: rule) else { return false }
        return reconciler.views[index].isDue(path) || dispatcher.rules[index].frozen.contains(path)
    }
}

import ActionAPI
import FileEvents
import Gates
import Jobs
package import Monitoring
import Reconciling
import Records
import Rules
import Running
import Settling
package import System
package import Watching

/// A run of an engine, turn by turn.
///
/// A turn receives hints, results and requests, lets paths settle, dispatches jobs, and persists all of it in one
/// commit. It waits for nothing but disks: between two turns the owner sleeps until ``nextWake``. It belongs to one
/// thread.
package struct EngineLoop: ~Copyable {
    let owner: Engine
    let watcher: any HintProducer
    private let hints: HintQueue
    let conditions: Conditions
    let reconciler: Reconciler
    var dispatcher: Dispatcher
    var run: RunState
    var now: ContinuousClock.Instant
    /// Hints that arrived after a stop was requested.
    private var late: [Hint] = []

    /// Starts a run: starts to watch the roots, and restores the state that an earlier run has left.
    ///
    /// - Parameters:
    ///   - owner: The engine, which runs once.
    ///   - watch: Creates the producer of hints for a scope.
    /// - Throws: An error if a required root is missing, or if watching cannot start.
    package init(
        _ owner: Engine, watching watch: (WatchScope, HintQueue) throws(WatchError) -> any HintProducer
    ) throws(StartError) {
        let engine = owner.context
        let (ruleset, options, host) = (engine.ruleset, engine.options, engine.host)
        if options.isWatching { try ruleset.prepareRoots(options, in: host.fileSystem, report: engine.report) }
        let queue = HintQueue { [mailbox = engine.mailbox] in mailbox.wake() }
        let conditions = Conditions(ruleset, log: engine.log, hasWork: options.hasWork)
        if ruleset.needsWriters, !options.isOnce { conditions.listen(engine.report) }
        let watcher: any HintProducer
        do {
            var scope = conditions.scope(
                of: ruleset, ignoring: options.ignored, watchesBeside: options.watchesBeside)
            // Later, nearly all files are in the ledger, which is compared with the disk after the listing.
            if engine.store.stored.lastCommit == nil { scope.readsExtended = false }
            watcher = try watch(scope, queue)
        } catch {
            throw .watching(error)
        }
        engine.monitor.record(ruleset)
        let start = RuleStarts(ruleset, engine.store, options, on: host)
        let reconciler = Reconciler(
            views: start.views, ledger: engine.store, isPatient: !options.isOnce, on: host,
            admits: { conditions.admit($1, rule: $0) }, mayRefuse: { conditions.mayRefuse(rule: $0) },
            hasWork: { conditions.hasWork($1.number) },
            writer: { conditions.writer(of: $1, rule: $0) },
            warn: { [report = engine.report] in report(.notice($0)) })
        self.owner = owner
        self.watcher = watcher
        hints = queue
        self.conditions = conditions
        self.reconciler = reconciler
        dispatcher = Dispatcher(engine, reconciler, conditions)
        run = RunState(starts: start)
        now = host.clock.now()
        takeOver(engine.store.stored)
    }

    var engine: EngineContext { owner.context }

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
        let others = [run.limit, run.storeRetry, run.nextSign, dispatcher.nextDeadline(after: now)]
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
        if conditions.asksForWork { conditions.interrupted = dispatcher.jobs.interrupted() }
        settle()
        if isLeasing { dispatch() }
        persist()
        // At the end, since each phase may doubt paths, and no other turn may follow.
        watcher.hintAgain(reconciler.shared.takeDoubted())
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
        dispatcher.prepared.wakeRest()
        let overdue = dispatcher.takeOverdue(at: engine.host.clock.now())
        // An outcome is recorded after all earlier events.
        let hasEnded = messages.contains { if case .ended = $0 { true } else { false } }
        if hasEnded || !overdue.isEmpty { watcher.drain() }
        var batch = hints.take()
        now = engine.host.clock.now()
        if batch.reports.contains(where: { if case .mounted = $0 { true } else { false } }) {
            recordMounts(dispatcher.jobs.changes.mounts ?? engine.store.stored.mounts)
        }
        if run.phase == .running {
            receive(&batch)
        } else {
            late += batch.hints
        }
        var waiting: [@Sendable () -> Void] = []
        for message in messages {
            switch message {
            case .ended(let series): dispatcher.recordEnd(of: series, at: now)
            case .advanced(let job, let steps, let outputs):
                dispatcher.record(steps, writing: outputs, of: job)
            case .declared(let job, let path): dispatcher.declare(path, of: job)
            case .rescan:
                engine.monitor.recordRescan(.asked)
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
                run.limit = now + RunState.endAtOnceLimit
                run.isForced = true
            }
        }
        for series in overdue { dispatcher.record(series, at: now) }
        return (batch.hints.count, waiting)
    }

    private mutating func receive(_ batch: inout HintQueue.Batch) {
        while let (next, earlier) = nextRules(&batch.reports) {
            reconciler.receive(HintQueue.Batch(hints: [], reports: earlier), at: now)
            for report in earlier { take(report) }
            settle()
            change(to: next)
        }
        reconciler.receive(batch, at: now)
        if !batch.hints.isEmpty { dispatcher.putBackSettling(at: now) }
        let queues = dispatcher.jobs.rules.filter { $0.jobs.waitingCount > 0 }
        for hint in batch.hints {
            reconciler.wake(ReadyGate.gate(hint.path))
            for state in queues { state.jobs.wake(hint.path, at: now) }
        }
        for report in batch.reports { take(report) }
    }

    private mutating func take(_ watching: WatchReport) {
        switch watching {
        case .ready(let directories):
            run.isReady = true
            let rules = dispatcher.jobs.rules.count
            engine.report(
                run.reloads == 0
                    ? .ready(directories: directories, rules: rules) : .reloaded(directories: directories, rules: rules)
            )
        case .failure(let error) where dispatcher.jobs.rules.ruleset.roots.contains(error.path):
            if engine.options.isOnce { run.error = run.error ?? error }
            engine.report(.watching(watching))
        default: engine.report(.watching(watching))
        }
    }

    // MARK: Settle

    private mutating func settle() {
        if run.phase == .running { reconciler.settle(at: now) }
        if reconciler.mayFreeze {
            drain()
            reconciler.freezeDue()
        }
        applyEffects()
        if run.isReady, !run.hasStarted {
            for index in run.starts.reselected { forgetUnmatched(index) }
            dispatcher.jobs.changes.hasStarted = true
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

    /// Does what the transitions of the reconciler require, in their order.
    ///
    /// - Returns: Whether jobs were stored.
    @discardableResult
    private mutating func applyEffects() -> Bool {
        var (settled, hasStored) = ([FileEvent](), false)
        for effect in reconciler.shared.takeEffects() {
            switch effect {
            case .due(let view, let event):
                settled.append(event)
                let state = dispatcher.jobs.rules[view]
                state.ruleGates.batch?.record(event.path, at: now)
                if state.rule.group != nil { reconciler.wake(state.rule.groupGate(of: event.path)) }
            case .stored(let view, let event, let isUncertain):
                hasStored = true
                settled.append(event)
                let state = dispatcher.jobs.rules[view]
                // The end of a listing follows the paths that it found.
                let after = event.kind == .scanEnded ? state.view.lastDuePosition : 0
                dispatcher.jobs.store(event, state, isInterrupted: isUncertain, after: after, at: now)
                state.ruleGates.batch?.record(event.path, at: now)
            case .gone(let view, let path, let wasHandled):
                dispatcher.jobs.recordGone(dispatcher.jobs.rules[view], path, wasHandled: wasHandled)
            case .superseded(let view, let offer):
                dispatcher.jobs.recordSuperseded(dispatcher.jobs.rules[view], offer)
            case .overtaken(let view, let number): dispatcher.stop(view, number)
            }
        }
        if !settled.isEmpty { engine.monitor.recordSettled(settled, at: now) }
        return hasStored
    }

    /// Deletes the ledger rows of paths that the rule no longer matches.
    private mutating func forgetUnmatched(_ index: Int) {
        let state = dispatcher.jobs.rules[index]
        var unmatched: [PathBytes] = []
        reconciler.shared.ledger.visit(state.id, inside: "/") { path, _ in
            if state.rule.root(matching: path) == nil { unmatched.append(path) }
        }
        for path in unmatched { state.view.forget(path) }
    }

    // MARK: Dispatch

    private mutating func dispatch() {
        for state in dispatcher.jobs.rules.active {
            state.jobs.advance(to: now)
            dispatcher.closeBatch(state)
        }
        guard run.phase != .ending, run.storeError == nil, dispatcher.hasWork() else { return }
        drain()
        // No batch waits for more files if none are expected.
        let isLast = engine.options.isOnce && run.isReady && reconciler.isSettled
        let isGathering = run.phase == .running && !isLast
        dispatcher.fill(at: now, isGathering: isGathering)
        // The ledger row of a stored event and its job belong to one commit.
        guard applyEffects() else { return }
        dispatcher.fill(at: now, isGathering: isGathering)
    }

    // MARK: Persist

    /// Commits the changes of the turn, and starts the leased actions.
    ///
    /// While the store cannot be written, nothing is leased and no action starts; changes stay in memory.
    mutating func persist() {
        let isPausing = run.storeRetry.map { $0 > now } ?? false
        // The attempts prepare their actions during the commit.
        if !isPausing { dispatcher.prepared.submit(running: dispatcher.lanes.count) }
        // Before the rules can change, since effects refer to them by index. Stored jobs start in the next turn.
        if applyEffects() { engine.mailbox.wake() }
        dispatcher.jobs.collect()
        guard !isPausing else { return }
        let changes = dispatcher.jobs.allChanges()
        if let error = engine.store.commit(changes, at: ClockPair(engine.host.clock.time(), now)) {
            if run.storeError != error { engine.report(.journal(error)) }
            run.storeError = error
            run.storeRetry = now + RunState.storePause
            if !error.mayPass { enter(.ending) }
            return
        }
        reconciler.markCommitted()
        dispatcher.jobs.markCommitted()
        restoreReturned()
        run.storeRetry = nil
        if run.storeError != nil {
            engine.report(.journal(nil))
            run.storeError = nil
            // Nothing was leased in this turn, and paths that have long been due cause no wake-up.
            run.storeRetry = now
        }
        dispatcher.prepared.launch(running: dispatcher.lanes.count, at: now)
        if run.hasStarted, !run.starts.ignoring.isEmpty { reportIgnored() }
    }

    /// Reports the existing files that cleaning rules ignore from their first start on.
    private mutating func reportIgnored() {
        for index in run.starts.ignoring {
            let state = dispatcher.jobs.rules[index]
            let files = engine.store.knownFiles(of: [state.id])
            if files > 0 { engine.report(.ignored(rule: state.rule.name, files: files)) }
        }
        run.starts.ignoring = []
    }

    // MARK: End

    mutating func enter(_ phase: EngineStatus.Phase) {
        guard phase != run.phase, run.phase != .ending else { return }
        run.phase = phase
        switch phase {
        case .running: break
        case .draining:
            // There may be space by now, and successfully stored changes do not count as failed.
            run.storeRetry = nil
            run.limit = now + RunState.drainLimit
            engine.report(.draining(jobs: dispatcher.dueJobs()))
        case .ending:
            run.limit = now + RunState.endLimit
            dispatcher.putBack(at: now)
            engine.stopSignal.raise()
        }
    }

    private var isDone: Bool {
        let running = dispatcher.runningCount
        switch run.phase {
        case .running:
            guard engine.options.isOnce, run.isReady, reconciler.isSettled, running == 0 else { return false }
            return dispatcher.jobs.rules.allSatisfy { isHandled($0) }
        case .draining:
            return running == 0 && (run.storeRetry == nil && !dispatcher.hasGivenUp || run.storeError != nil)
        case .ending: return running == 0 || run.limit.map { $0 <= now } ?? false
        }
    }

    /// Whether everything of a rule is handled, except jobs that wait for their window or for other files.
    private func isHandled(_ state: RuleState) -> Bool {
        if state.ruleGates.window?.opens != nil { return true }
        return state.jobs.jobs.allSatisfy { $0.isStored && $0.waiting.map { !$0.cause.passesSoon } ?? false }
            && state.view.dueCount == state.view.heldCount
    }

    private mutating func recordTurn(hints: Int) {
        let (queue, pending) = dispatcher.jobs.count()
        let (held, waits) = (reconciler.held, longWaits())
        engine.monitor.recordTurn(hints: hints, at: now) { status in
            (status.phase, status.isReady, status.pauses) = (run.phase, run.isReady, dispatcher.pauses)
            (status.queue, status.pending, status.slots) = (queue, pending, dispatcher.lanes.status)
            (status.settling, status.held, status.waits) = (reconciler.settling, held, waits)
        }
        if let interval = engine.options.signOfLife, run.isReady, run.nextSign.map({ $0 <= now }) ?? true {
            run.nextSign = now + interval
            engine.report(.alive)
        }
    }

    /// Returns the long waits of all rules, in no particular order.
    private func longWaits() -> [LongWait] {
        var waits: [LongWait] = []
        for state in dispatcher.jobs.rules where !state.waits.all.isEmpty {
            state.waits.keep { state.view.isUnfinished($0) || state.jobs.contains($0) }
            waits += state.waits.all.values
        }
        return waits
    }

    /// Stops watching, and returns the summary.
    package mutating func end() -> EngineSummary {
        let due = engine.options.isDry ? duePaths().paths : []
        watcher.stop()
        dispatcher.prepared.refuse()
        late += hints.take().hints
        let (queue, counts) = (queue, engine.monitor.status(at: now).counts)
        let isIdle = engine.options.isOnce && queue.count + counts.ended == 0
        return EngineSummary(
            succeeded: counts.succeeded, skipped: counts.skipped, failed: counts.failed, unfinished: queue.count,
            isIdle: isIdle, known: isIdle ? engine.store.knownFiles(of: dispatcher.jobs.rules.map(\.id)) : 0,
            unsettled: reconciler.unsettled(and: late), due: due, isForced: run.isForced, error: run.error,
            journalError: run.storeError)
    }
}

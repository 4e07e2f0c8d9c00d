import FileEvents
import PluginProtocol
import Reconciling
import Rules
import Storage
import System

// Requests of users for jobs.
extension EngineLoop {
    mutating func carryOut(_ command: JobCommand) {
        switch command {
        case .retry(let jobs): for job in jobs { retry(job) }
        case .discard(let jobs): for job in jobs { discard(job) }
        case .undo(let jobs): undo(jobs)
        case .apply(let requests): for request in requests { apply(request) }
        }
    }

    /// Makes the next attempt of a job due; a failed job starts again as if it were new.
    private mutating func retry(_ id: JobID) {
        if let (index, number, isFrozen) = dispatcher.find(id) {
            if isFrozen {
                dispatcher.rules[index].frozen[number]?.due = now
            } else {
                reconciler.views[index].hasten(number, at: now)
            }
            return
        }
        let clocks = ClockPair(engine.host.clock.time(), now)
        guard dispatcher.changes.jobs[id] == nil, let stored = engine.store.job(id, at: clocks), stored.state == .failed
        else { return }
        var job = stored.job
        job.attempt = 0
        job.isInterrupted = false
        job.due = now
        guard let index = dispatcher.ruleset.index(of: job.rule) else {
            let pending = StoredJob(job, .pending, stored.offer, number: stored.number, due: now)
            dispatcher.changes.jobs[id] = JobChange(.unfinished(pending), isNew: false)
            return
        }
        job.rule = dispatcher.rules[index].rule.name
        guard var offer = stored.offer else {
            let entry = FrozenQueue.Entry(job: job, number: stored.number, due: now)
            dispatcher.append(entry, index)
            reconciler.views[index].restoreFrozen([job.event])
            return dispatcher.storeFrozen(stored.number, index)
        }
        offer.isUncertain = true
        dispatcher.rules[index].jobs[offer.number] = job
        reconciler.views[index].retry(offer, at: now)
        guard reconciler.views[index].offer(offer.number) == nil else { return }
        // A newer event of its paths was leased since: they are compared instead.
        dispatcher.rules[index].jobs[offer.number] = nil
        dispatcher.changes.jobs[id] = JobChange(.deleted, isNew: false)
    }

    /// Ends a job that is not running as skipped, and deletes a failed one.
    private mutating func discard(_ id: JobID) {
        let outcome = Outcome(.skipped, "discarded", code: "discarded")
        guard let (index, number, isFrozen) = dispatcher.find(id) else { return discardStored(id, outcome) }
        if isFrozen {
            guard let entry = dispatcher.rules[index].frozen[number], !entry.isRunning else { return }
            let input = Attempt.Input(job: entry.job, number: number, isFrozen: true)
            dispatcher.endFrozen(input, index, .skipped, outcome, &reconciler, at: now)
        } else if let offer = reconciler.views[index].offer(number), !offer.isRunning {
            dispatcher.end(number, index, .skipped, outcome, reconciler)
            reconciler.views[index].finish(number, .succeeded, at: now)
        }
    }

    /// Discards a failed job, or a job of a rule that does not run; its offered state is recorded as handled.
    private mutating func discardStored(_ id: JobID, _ outcome: Outcome) {
        guard dispatcher.changes.jobs[id] == nil else { return }
        let clocks = ClockPair(engine.host.clock.time(), now)
        guard let stored = engine.store.job(id, at: clocks), stored.state != .failed else {
            // A job with an unreadable row is a failed job.
            dispatcher.changes.jobs[id] = JobChange(.deleted, isNew: false)
            return
        }
        guard stored.state == .pending || stored.state == .running else { return }
        let ended = StoredJob(stored.job, .skipped, stored.offer, number: stored.number)
        dispatcher.changes.jobs[id] = JobChange(.ended(ended, outcome), isNew: false)
        guard let rule = engine.store.id(of: stored.job.rule), stored.offer != nil else { return }
        let event = stored.job.event
        dispatcher.changes.rows[rule, default: [:]][event.path] = LedgerRow(
            event.kind == .deleted ? nil : event.snapshot)
        if let from = event.from { dispatcher.changes.rows[rule, default: [:]][from] = LedgerRow() }
    }

    /// Runs a rule for a file in its current state, whether or not the rule matches it.
    private mutating func apply(_ request: JobRequest) {
        guard let index = dispatcher.ruleset.index(of: request.rule) else { return }
        let rule = dispatcher.rules[index].rule
        let root =
            rule.root(taking: request.path) ?? rule.roots.first { request.path.isInside($0) } ?? request.path.parent
        var snapshot = Snapshot.unseen
        let files = WatchedPaths(roots: [root], in: engine.host.fileSystem)
        if case .present(let present) = files.look(at: request.path) { snapshot = present }
        let event = FileEvent(
            kind: .created, path: request.path, root: root, snapshot: snapshot, origin: .manual,
            time: engine.host.clock.time())
        dispatcher.freeze(event, index, id: request.id, at: now)
    }

    // MARK: Undo

    /// Undoes the changes of jobs, the last one first; no rule receives an event for that.
    private mutating func undo(_ jobs: [JobID]) {
        var attempts: [KeptChanges] = []
        for job in jobs { attempts += engine.store.changes(of: job).filter { !attempts.contains($0) } }
        let pending = dispatcher.changes.undos.map(\.changes)
        for attempt in attempts where !attempt.isUndone && !pending.contains(attempt) {
            var reasons: [String?] = attempt.undo?.reasons ?? attempt.changes.map { _ in "" }
            for (index, change) in attempt.changes.enumerated().reversed() where reasons[index] != nil {
                reasons[index] = engine.options.undo(change, attempt.event)
                if reasons[index] == nil {
                    for path in change.paths { recordOwnWrite(path) }
                } else if case .unpacked(let path, _, _) = change.kind {
                    recordOwnWrite(path)
                }
            }
            let record = UndoRecord(time: engine.host.clock.time(), reasons: reasons)
            dispatcher.changes.undos.append((attempt, record))
        }
    }

    /// Records the current state of a path and everything below it as handled, for every rule.
    private mutating func recordOwnWrite(_ path: PathBytes) {
        for index in dispatcher.rules.indices {
            for known in reconciler.views[index].knownPaths(inside: path) { _ = reconciler.views[index].undo(known) {} }
        }
    }
}

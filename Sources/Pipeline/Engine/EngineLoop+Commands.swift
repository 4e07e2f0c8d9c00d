import FileEvents
import Jobs
import PluginProtocol
import Reconciling
import Records
import Rules
import Running
import System

// The requests of users for jobs.
extension EngineLoop {
    mutating func carryOut(_ command: JobCommand) {
        switch command {
        case .retry(let ids): for id in ids { retry(id) }
        case .discard(let ids): for id in ids { discard(id) }
        case .undo(let ids): undo(ids)
        case .apply(let requests): for request in requests { apply(request) }
        }
    }

    /// Returns the stored job with the id, unless it changes in this turn.
    private func stored(_ id: JobID) -> (state: JobState, job: OpenJob)? {
        if dispatcher.jobs.changes.jobs[id] != nil { return nil }
        return engine.store.job(id, at: ClockPair(engine.host.clock.time(), now))
    }

    /// Makes the next attempt of a job due; a failed job starts again as if it were new.
    private mutating func retry(_ id: JobID) {
        if let (state, number) = dispatcher.find(id) {
            state.jobs.delay(number, until: now)
            state.view.hasten(number, at: now)
        } else if let (state, open) = stored(id), state == .failed {
            restart(open)
        }
    }

    /// Makes a failed job pending.
    private mutating func restart(_ failed: OpenJob) {
        var (job, offer) = (failed.job, failed.offer)
        job.attempt = 0
        job.due = now
        let isGivenUp = job.failure != nil
        job.failure = nil
        job.schedule?.putBack(until: now)
        guard let state = dispatcher.jobs.rules[job.rule] else {
            offer?.state = .retrying(now)
            return dispatcher.jobs.store(OpenJob(job, offer))
        }
        job.rule = state.rule.name
        guard var offer else {
            dispatcher.jobs.rules.insert(stored: job, state)
            return state.view.restoreFrozen([job.event])
        }
        offer.isUncertain = true
        // What `on_failure` has removed is not at the path for the action.
        if isGivenUp { offer.hasRemovedInput = job.steps.contains(where: \.hasRemovedInput) }
        state.jobs.insert(job)
        state.view.retry(offer, at: now)
        guard state.view.offer(offer.number) == nil else { return }
        // A newer event of its paths was leased since: they are compared instead.
        dispatcher.jobs.endOutdated(job, state)
    }

    /// Ends a job that is not running as skipped, and deletes a failed one.
    private mutating func discard(_ id: JobID) {
        let outcome = Outcome(.skipped, "discarded", code: "discarded")
        guard let (state, number) = dispatcher.find(id) else { return discardStored(id, outcome) }
        guard let job = state.jobs[number], !(job.schedule?.isRunning ?? state.view.offer(number)?.isRunning ?? true)
        else { return }
        dispatcher.jobs.end(number, state, .skipped, outcome, at: now)
        dispatcher.jobs.reportUnrun(job, state, outcome)
    }

    /// Discards a failed job, or a job of a rule that does not run; its offered state is recorded as handled.
    private mutating func discardStored(_ id: JobID, _ outcome: Outcome) {
        guard dispatcher.jobs.changes.jobs[id] == nil else { return }
        guard let (state, open) = stored(id), state != .failed else {
            // A job with an unreadable row is a failed job.
            dispatcher.jobs.changes.jobs[id] = JobChange(.deleted, isNew: false)
            return
        }
        guard state == .pending || state == .running else { return }
        dispatcher.jobs.changes.jobs[id] = JobChange(.ended(open, .skipped, outcome), isNew: false)
        guard let rule = engine.store.id(of: open.job.rule), open.offer != nil else { return }
        dispatcher.jobs.changes.setHandled(open.job.event, of: rule)
    }

    /// Runs a rule for a file in its current state, whether or not the rule matches it.
    private mutating func apply(_ request: JobRequest) {
        guard let state = dispatcher.jobs.rules[request.rule] else { return }
        let rule = state.rule
        let root =
            rule.root(matching: request.path) ?? rule.roots.first { request.path.isInside($0) } ?? request.path.parent
        let files = WatchedPaths(roots: [root], in: engine.host.fileSystem)
        let snapshot = files.inspect(at: request.path).snapshot ?? .unseen
        let event = FileEvent(
            kind: .created, path: request.path, root: root, snapshot: snapshot, origin: .manual,
            time: engine.host.clock.time())
        dispatcher.jobs.store(event, state, id: request.id, at: now)
    }

    // MARK: Undo

    /// Undoes the changes of jobs, the last one first; no rule receives an event for that.
    private mutating func undo(_ ids: [JobID]) {
        var attempts: [RecordedChanges] = []
        for id in ids { attempts += engine.store.changes(of: id).filter { !attempts.contains($0) } }
        let pending = dispatcher.jobs.changes.undos.map(\.changes)
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
            dispatcher.jobs.changes.undos.append((attempt, record))
        }
    }

    /// Records the current state of a path and everything below it as handled, for every rule.
    private func recordOwnWrite(_ path: PathBytes) {
        for view in reconciler.views {
            for known in view.knownPaths(inside: path) { _ = view.undo(known) {} }
        }
    }
}

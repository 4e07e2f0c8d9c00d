import FileEvents
import Jobs
import PluginProtocol
import Reconciling
import Records
import Rules
import Running
import System

/// Carries out the requests of users for jobs.
struct JobCommandRunner {
    let engine: EngineContext
    let now: ContinuousClock.Instant

    func carryOut(_ command: JobCommand, _ dispatcher: inout Dispatcher, _ reconciler: inout Reconciler) {
        switch command {
        case .retry(let ids): for id in ids { retry(id, &dispatcher, &reconciler) }
        case .discard(let ids): for id in ids { discard(id, &dispatcher, &reconciler) }
        case .undo(let ids): undo(ids, &dispatcher.jobs, &reconciler)
        case .apply(let requests): for request in requests { apply(request, &dispatcher.jobs) }
        }
    }

    /// Returns the stored job with the id, unless it changes in this turn.
    private func stored(_ id: JobID, _ jobs: borrowing JobRegistry) -> (state: JobState, job: OpenJob)? {
        jobs.changes.jobs[id] == nil ? engine.store.job(id, at: ClockPair(engine.host.clock.time(), now)) : nil
    }

    /// Makes the next attempt of a job due; a failed job starts again as if it were new.
    private func retry(_ id: JobID, _ dispatcher: inout Dispatcher, _ reconciler: inout Reconciler) {
        if let (state, number) = dispatcher.find(id) {
            state.jobs.delay(number, until: now)
            reconciler.views[state.index].hasten(number, at: now)
        } else if let (state, open) = stored(id, dispatcher.jobs), state == .failed {
            restart(open, &dispatcher.jobs, &reconciler)
        }
    }

    /// Makes a failed job pending.
    private func restart(_ failed: OpenJob, _ jobs: inout JobRegistry, _ reconciler: inout Reconciler) {
        var (job, offer) = (failed.job, failed.offer)
        job.attempt = 0
        job.due = now
        let isGivenUp = job.failure != nil
        job.failure = nil
        job.schedule?.putBack(until: now)
        guard let state = jobs.rules[job.rule] else {
            offer?.state = .retrying(now)
            return jobs.store(OpenJob(job, offer))
        }
        job.rule = state.rule.name
        guard var offer else {
            jobs.rules.insert(stored: job, state)
            return reconciler.views[state.index].restoreFrozen([job.event])
        }
        offer.isUncertain = true
        // What `on_failure` has removed is not at the path for the action.
        if isGivenUp { offer.hasRemovedInput = job.steps.contains(where: \.hasRemovedInput) }
        state.jobs.insert(job)
        reconciler.views[state.index].retry(offer, at: now)
        guard reconciler.views[state.index].offer(offer.number) == nil else { return }
        // A newer event of its paths was leased since: they are compared instead.
        jobs.endOutdated(job, state)
    }

    /// Ends a job that is not running as skipped, and deletes a failed one.
    private func discard(_ id: JobID, _ dispatcher: inout Dispatcher, _ reconciler: inout Reconciler) {
        let outcome = Outcome(.skipped, "discarded", code: "discarded")
        guard let (state, number) = dispatcher.find(id) else { return discardStored(id, outcome, &dispatcher.jobs) }
        guard let job = state.jobs[number],
            !(job.schedule?.isRunning ?? reconciler.views[state.index].offer(number)?.isRunning ?? true)
        else { return }
        dispatcher.jobs.end(number, state, .skipped, outcome, &reconciler, at: now)
        dispatcher.jobs.reportUnrun(job, state, outcome)
    }

    /// Discards a failed job, or a job of a rule that does not run; its offered state is recorded as handled.
    private func discardStored(_ id: JobID, _ outcome: Outcome, _ jobs: inout JobRegistry) {
        guard jobs.changes.jobs[id] == nil else { return }
        guard let (state, open) = stored(id, jobs), state != .failed else {
            // A job with an unreadable row is a failed job.
            jobs.changes.jobs[id] = JobChange(.deleted, isNew: false)
            return
        }
        guard state == .pending || state == .running else { return }
        jobs.changes.jobs[id] = JobChange(.ended(open, .skipped, outcome), isNew: false)
        guard let rule = engine.store.id(of: open.job.rule), open.offer != nil else { return }
        jobs.changes.setHandled(open.job.event, of: rule)
    }

    /// Runs a rule for a file in its current state, whether or not the rule matches it.
    private func apply(_ request: JobRequest, _ jobs: inout JobRegistry) {
        guard let state = jobs.rules[request.rule] else { return }
        let rule = state.rule
        let root =
            rule.root(matching: request.path) ?? rule.roots.first { request.path.isInside($0) } ?? request.path.parent
        let files = WatchedPaths(roots: [root], in: engine.host.fileSystem)
        let snapshot = files.inspect(at: request.path).snapshot ?? .unseen
        let event = FileEvent(
            kind: .created, path: request.path, root: root, snapshot: snapshot, origin: .manual,
            time: engine.host.clock.time())
        jobs.store(event, state, id: request.id, at: now)
    }

    // MARK: Undo

    /// Undoes the changes of jobs, the last one first; no rule receives an event for that.
    private func undo(_ ids: [JobID], _ jobs: inout JobRegistry, _ reconciler: inout Reconciler) {
        var attempts: [RecordedChanges] = []
        for id in ids { attempts += engine.store.changes(of: id).filter { !attempts.contains($0) } }
        let pending = jobs.changes.undos.map(\.changes)
        for attempt in attempts where !attempt.isUndone && !pending.contains(attempt) {
            var reasons: [String?] = attempt.undo?.reasons ?? attempt.changes.map { _ in "" }
            for (index, change) in attempt.changes.enumerated().reversed() where reasons[index] != nil {
                reasons[index] = engine.options.undo(change, attempt.event)
                if reasons[index] == nil {
                    for path in change.paths { recordOwnWrite(path, jobs.rules.indices, &reconciler) }
                } else if case .unpacked(let path, _, _) = change.kind {
                    recordOwnWrite(path, jobs.rules.indices, &reconciler)
                }
            }
            let record = UndoRecord(time: engine.host.clock.time(), reasons: reasons)
            jobs.changes.undos.append((attempt, record))
        }
    }

    /// Records the current state of a path and everything below it as handled, for every rule.
    private func recordOwnWrite(_ path: PathBytes, _ rules: Range<Int>, _ reconciler: inout Reconciler) {
        for index in rules {
            for known in reconciler.views[index].knownPaths(inside: path) { _ = reconciler.views[index].undo(known) {} }
        }
    }
}

import FileEvents
import Jobs
import Monitoring
import PluginProtocol
import Reconciling
import Records
import Rules
import Running
import System
import Watching

// The rules at the start of a run, and their replacement during a run.
//
// The watcher comes first: it also watches for the new rules, reports that, and lists existing files as at a start.
// From that report on, the reconciler serves the new rules. So nothing is lost that would not be lost by a restart.
extension EngineLoop {
    /// Restores the jobs, the read positions and the due paths that an earlier run has left.
    ///
    /// - Parameter running: The rules that are already running.
    mutating func restore(except running: Set<RuleID> = []) {
        for state in dispatcher.jobs.rules where !running.contains(state.id) {
            restoreJobs(state)
            state.view.restore(engine.store.positions(of: state.id))
            state.view.restoreDue(engine.store.duePaths(of: state.id), at: now)
        }
    }

    /// Restores the stored jobs of rules that were added again while an old attempt ran that is now finished and
    /// committed.
    mutating func restoreReturned() {
        guard !dispatcher.returned.isEmpty else { return }
        // They start in the next turn.
        engine.mailbox.wake()
        for state in dispatcher.jobs.rules where dispatcher.returned.contains(state.id) { restoreJobs(state) }
        dispatcher.returned = []
    }

    private mutating func restoreJobs(_ state: RuleState) {
        let clocks = ClockPair(engine.host.clock.time(), now)
        var offers: [Offer] = []
        var events: [FileEvent] = []
        var numbers: [UInt64] = []
        for open in engine.store.unfinishedJobs(of: state.id, at: clocks)
        where state.jobs[open.job.number] == nil {
            // Its attempt started before the rule was removed.
            if let (_, input) = dispatcher.runningInput(open.job.id) {
                dispatcher.uses.close(input.job.event.paths)
                continue
            }
            var job = restored(open)
            numbers.append(job.number)
            if var offer = open.offer {
                if job.failure != nil { offer.state = .givenUp } else if offer.isRunning { offer.interrupt() }
                state.jobs.insert(job)
                offers.append(offer)
            } else {
                let isGivenUp = job.failure != nil
                job.schedule?.isRunning = isGivenUp
                // The row of an interrupted job says that it runs.
                dispatcher.jobs.rules.insert(stored: job, state, isRestored: !job.isInterrupted)
                events.append(job.event)
            }
        }
        state.view.restoreFrozen(events)
        conditions.interrupted = dispatcher.jobs.interrupted(offers, state)
        state.view.restore(offers, at: now)
        dispatcher.givenUp += state.givenUp(numbers)
    }

    /// Returns the job as the next attempt receives it; an attempt that was running was interrupted.
    private mutating func restored(_ open: OpenJob) -> Job {
        var job = open.job
        guard open.isRunning else { return job }
        job.isInterrupted = true
        guard job.failure == nil else { return job }
        let outcome = Outcome.interrupted("Alight exited while the action ran")
        job.previous = PreviousAttempt(job.attempt, outcome)
        let started = open.leased.map { engine.host.clock.time().advanced(by: $0 - now) } ?? job.event.time
        let last = max(engine.store.stored.lastCommit ?? started, started)
        let attempt = AttemptRecord(
            number: job.attempt, started: started, duration: last.since(started), outcome: outcome)
        dispatcher.jobs.changes.attempts.append((job.id, attempt))
        return job
    }

    // MARK: Reload

    /// Creates the roots of other rules, and makes the watcher watch for them.
    mutating func prepare(_ ruleset: Ruleset, ignored: [PathBytes]) {
        guard run.phase == .running, !engine.options.isOnce else { return }
        do {
            try ruleset.prepareRoots(engine.options, in: engine.host.fileSystem, report: engine.report)
        } catch {
            engine.report(.notReloaded(error))
            return
        }
        run.reloads += 1
        run.next.append((ruleset, run.reloads))
        if ruleset.needsWriters { conditions.listen(engine.report) }
        let scope = conditions.scope(
            of: ruleset, ignoring: ignored, watchesBeside: engine.options.watchesBeside)
        watcher.change(to: scope, number: run.reloads)
    }

    /// Returns the rules for which the watcher has started to watch, and its earlier reports.
    ///
    /// Rules that have already been superseded also run briefly: files listed for them must not be attributed to the
    /// start of the rules before them.
    mutating func nextRules(_ reports: inout [WatchReport]) -> (Ruleset, earlier: [WatchReport])? {
        for (position, report) in reports.enumerated() {
            guard case .changed(let number) = report,
                let index = run.next.firstIndex(where: { $0.number == number })
            else { continue }
            let earlier = Array(reports[..<position])
            reports.removeFirst(position + 1)
            let next = run.next[index].ruleset
            run.next.removeFirst(index + 1)
            return (next, earlier)
        }
        return nil
    }

    /// Runs other rules, now that the watcher watches for them.
    mutating func change(to ruleset: Ruleset) {
        dispatcher.putBack(at: now)
        // The rows of the previous rules are committed before the new rules read theirs.
        persist()
        let running = Set(dispatcher.jobs.rules.map(\.id))
        let unloaded = engine.store.stored.unloaded
        let start = RuleStarts(ruleset, engine.store, engine.options, running: running, on: engine.host)
        reportNewPaths(in: ruleset, insteadOf: conditions.ruleset)
        conditions.ruleset = ruleset
        reconciler.change(to: start.views, at: now)
        dispatcher.change(to: ruleset)
        run.starts = start
        restore(except: running)
        dispatcher.pauses = dispatcher.pauses.renamed(for: ruleset, in: engine.store)
        if dispatcher.pauses != engine.store.stored.pauses { dispatcher.jobs.changes.pauses = dispatcher.pauses }
        engine.monitor.record(ruleset)
        engine.monitor.record(dispatcher.pauses)
        for (rule, jobs) in engine.store.stored.unloaded.sorted(by: { $0.key < $1.key }) where unloaded[rule] != jobs {
            engine.report(.waiting(rule: rule, jobs: jobs))
        }
        recordMounts(engine.store.stored.mounts)
        let all = [ruleset] + run.next.map(\.ruleset)
        if !all.contains(where: \.needsWriters) { conditions.stopListening() }
        run.isReady = false
        run.hasStarted = false
    }

    /// Reports the rules without a name that replace others of which the path has changed.
    private func reportNewPaths(in ruleset: Ruleset, insteadOf former: Ruleset) {
        func unnamed(_ ruleset: Ruleset, except other: Ruleset) -> [String] {
            ruleset.listed.filter { rule in
                rule.identifyingPath.map { path in !other.listed.contains { $0.identifyingPath == path } } ?? false
            }.map(\.name)
        }
        let gone = unnamed(former, except: ruleset)
        guard !gone.isEmpty else { return }
        for rule in unnamed(ruleset, except: former) { engine.report(.newPath(rule: rule, insteadOf: gone)) }
    }

    // MARK: Pauses

    mutating func changePauses(_ change: (inout Pauses) -> Void) {
        let before = dispatcher.pauses
        change(&dispatcher.pauses)
        guard dispatcher.pauses != before else { return }
        dispatcher.jobs.changes.pauses = dispatcher.pauses
        dispatcher.putBackPaused(at: now)
        engine.report(.paused(dispatcher.pauses))
    }

    /// Restores the pauses of the last run, except in a run that ends by itself.
    mutating func restorePauses(_ stored: Pauses) {
        guard !engine.options.isOnce, !engine.options.isDry else { return }
        dispatcher.pauses = stored.renamed(for: dispatcher.jobs.rules.ruleset, in: engine.store)
        if dispatcher.pauses != stored { dispatcher.jobs.changes.pauses = dispatcher.pauses }
        engine.monitor.record(dispatcher.pauses)
        if !dispatcher.pauses.isEmpty { engine.report(.paused(dispatcher.pauses)) }
    }

    // MARK: Mounts

    /// Stores the mount points of the roots, in addition to those whose file system is not mounted now.
    mutating func recordMounts(_ known: [MountRecord]) {
        let away = known.filter { $0.isAway(in: engine.host.fileSystem) }
        reconciler.setUnmounted(away.map(\.point))
        let points = Set(away.map(\.point))
        let present = MountRecord.present(for: dispatcher.jobs.rules.ruleset.roots, in: engine.host.fileSystem)
        dispatcher.jobs.changes.mounts = away + present.filter { !points.contains($0.point) }
    }
}

extension MountRecord {
    /// Returns the mount points through which files of the roots are visible, or may be.
    fileprivate static func present(for roots: [PathBytes], in fileSystem: any FileSystem) -> [MountRecord] {
        let points = fileSystem.mountPoints
        var wanted: Set<PathBytes> = []
        for root in roots {
            // A root may be a link, or may not exist yet.
            var real = root
            while fileSystem.resolve(real) == nil, real.parent != real { real = real.parent }
            guard let real = fileSystem.resolve(real) else { continue }
            wanted.formUnion(points.filter { $0.isInside(real) })
            if let holder = points.filter({ real.isInside($0) }).max(by: { $0.bytes.count < $1.bytes.count }) {
                wanted.insert(holder)
            }
        }
        return wanted.sorted().compactMap { point in
            fileSystem.stat(point).snapshot.map { MountRecord(point: point, identity: $0.identity) }
        }
    }

    /// Whether the recorded file system is not currently mounted there.
    fileprivate func isAway(in fileSystem: any FileSystem) -> Bool {
        // The root file system is always mounted, even if it differs in each container.
        guard point != "/" else { return false }
        guard fileSystem.mountPoints.contains(point), let now = fileSystem.stat(point).snapshot?.identity else {
            return true
        }
        // The device number may differ after a boot.
        return now.inode != identity.inode || now.birth != identity.birth
    }
}

package import FileEvents
package import Gates
package import Monitoring
package import Reconciling
package import Records
package import Rules
package import System

/// The jobs of the running rules, and their changes that are not committed yet.
package struct JobRegistry: ~Copyable {
    package let journal: any Journal
    package let host: Host
    /// The outputs of the latest actions.
    package let chains: OutputChains
    package let report: @Sendable (EngineReport) -> Void
    package let reconciler: Reconciler
    package var rules: RunningRules
    /// The changes that are not committed yet.
    package var changes = TurnChanges()
    /// The jobs that have no row yet.
    private var newJobs: Set<JobID> = []

    package init(
        _ ruleset: Ruleset, _ reconciler: Reconciler, _ journal: any Journal, _ chains: OutputChains, on host: Host,
        report: @escaping @Sendable (EngineReport) -> Void
    ) {
        (self.journal, self.host, self.chains, self.report) = (journal, host, chains, report)
        self.reconciler = reconciler
        rules = RunningRules(ruleset, reconciler, at: host.clock.time())
        reconciler.shared.number = journal.stored.number
    }

    // MARK: Leases

    /// Leases a candidate.
    package mutating func lease(_ candidate: Reconciler.Candidate, _ state: RuleState) -> OpenJob {
        var candidate = candidate
        if let age = state.gates.age { candidate.event = age.opened(candidate.event) }
        let offer = state.view.lease(candidate)
        let rule = state.rule
        var job: Job
        if let known = state.jobs[offer.number] {
            job = known
            job.event = offer.event
            // Finished steps of an earlier event do not count for another one.
            if !offer.hasSteps { job.steps = [] }
            job.keepSteps(of: rule)
        } else {
            job = Job(id: JobID(now: host.clock.time()), rule: rule.name, event: offer.event, number: offer.number)
            newJobs.insert(job.id)
        }
        // The rule may have had another name.
        job.rule = rule.name
        job.forgetWriter(unlessNeededBy: rule)
        job.attempt += 1
        job.waiting = nil
        if offer.isRepeat || job.attempt == 1 && offer.followsUnknownState {
            job.isInterrupted = true
        }
        job.mayHaveRunBefore = offer.isUncertain || offer.isInterrupted
        state.view.update(offer.number) { offer in
            offer.hasSteps = !job.steps.isEmpty
            offer.mayRemoveInput = rule.mayRemoveInput(job)
        }
        state.jobs.insert(job)
        return OpenJob(job, offer)
    }

    /// Leases a due stored job.
    ///
    /// - Returns: Nil if it ends without running.
    package mutating func lease(stored job: Job, _ state: RuleState, at time: GateTime) -> OpenJob? {
        var job = job
        job.mayHaveRunBefore = job.isInterrupted
        job.attempt += 1
        job.waiting = nil
        job.rule = state.rule.name
        // A user names a file, not its content at that time.
        if job.event.origin == .manual, case .present(let snapshot) = time.files.inspect(at: job.event.path) {
            job.event.snapshot = snapshot
        }
        job.keepSteps(of: state.rule)
        job.schedule?.isRunning = true
        state.jobs.update(job.number) { $0 = job }
        guard let outcome = job.interruptedTooOften(state.rule.retry) else { return OpenJob(job, nil) }
        endUnrun(job, state, outcome, at: time.now)
        return nil
    }

    /// Stores a job whose event is not compared with the ledger.
    package mutating func store(
        _ event: FileEvent, _ state: RuleState, id: JobID? = nil, isInterrupted: Bool = false, after: UInt64 = 0,
        at now: ContinuousClock.Instant
    ) {
        let rule = state.rule
        let schedule = Job.Schedule(due: now, after: after)
        var job = Job(
            id: id ?? JobID(now: event.time), rule: rule.name, event: event, number: reconciler.shared.nextNumber(),
            schedule: schedule)
        job.forgetWriter(unlessNeededBy: rule)
        job.isInterrupted = isInterrupted
        newJobs.insert(job.id)
        rules.insert(stored: job, state)
    }

    /// Puts a leased job back that has not started, as if it had not been leased.
    package mutating func putBack(_ number: UInt64, _ state: RuleState, at now: ContinuousClock.Instant) {
        guard let job = state.jobs[number] else { return }
        chains.end(job.id, at: host.clock.time())
        if job.attempt == 1 { state.gates.loop.takeBack(job.event.path) }
        state.jobs.update(number) { job in
            job.attempt -= 1
            job.schedule?.putBack(until: now)
        }
        state.view.putBack(number, at: now)
    }

    // MARK: Rows

    /// Stores an unfinished job.
    package mutating func store(_ open: OpenJob, hasNewEvent: Bool = false) {
        changes.jobs[open.job.id] = JobChange(.unfinished(open), isNew: hasNewEvent || newJobs.contains(open.job.id))
    }

    /// Stores the end of a job; `batch` is the first job of the attempt with which it ended, nil for the job itself.
    package mutating func end(_ open: OpenJob, _ state: JobState, _ outcome: Outcome, of batch: JobID? = nil) {
        let id = open.job.id
        let first = state == .failed && open.canBeSuperseded ? batch ?? id : nil
        changes.jobs[id] = JobChange(.ended(open, state, outcome, failedWith: first), isNew: newJobs.contains(id))
    }

    /// Ends a job: stores its end, and sets the ledger to what its action has received.
    ///
    /// - Parameters:
    ///   - number: The number of the job.
    ///   - state: Its rule.
    ///   - jobState: Its final state.
    ///   - outcome: The outcome of its last attempt.
    ///   - batch: The first job of that attempt.
    ///   - isUntouched: Whether none of its actions has started in an earlier attempt.
    ///   - now: The current time; all hints that were queued when the result arrived have been received.
    package mutating func end(
        _ number: UInt64, _ state: RuleState, _ jobState: JobState, _ outcome: Outcome, of batch: JobID? = nil,
        isUntouched: Bool = false, at now: ContinuousClock.Instant
    ) {
        guard let job = state.jobs.remove(number) else { return }
        end(OpenJob(job, state.view.offer(number)), jobState, outcome, of: batch)
        let termination = Reconciler.Termination(jobState, outcome)
        if job.isStored {
            state.view.endFrozen(job.event, termination, at: now)
        } else if termination == .gone, isUntouched {
            state.view.withdraw(number, isReported: true, at: now)
        } else {
            state.view.finish(number, termination, at: now)
        }
    }

    /// Ends a leased job without running it.
    package mutating func endUnrun(
        _ job: Job, _ state: RuleState, _ outcome: Outcome, at now: ContinuousClock.Instant
    ) {
        end(job.number, state, .failed, outcome, at: now)
        reportUnrun(job, state, outcome, .failed)
    }

    /// Removes the row of a job that is not committed yet; returns false if the job has a committed row.
    private mutating func withdraw(_ id: JobID) -> Bool {
        guard newJobs.remove(id) != nil else { return false }
        changes.jobs[id] = nil
        return true
    }

    /// The changes to commit: of jobs, of the ledger, of read positions and of due paths.
    package func allChanges() -> TurnChanges {
        var changes = changes
        for (rule, rows) in reconciler.shared.ledger.changes { changes.rows[rule, default: [:]].merge(rows) { $1 } }
        changes.positions = reconciler.shared.carriedChanges
        changes.due = reconciler.shared.dueChanges
        return changes
    }

    package mutating func markCommitted() {
        changes = TurnChanges()
        newJobs = []
        rules.forgetIdle()
    }

    // MARK: Effects of the reconciler

    /// Collects the rows of changed jobs for the commit.
    package mutating func collect() {
        for state in rules.active {
            for job in state.jobs.takeChanged() { store(OpenJob(job, nil)) }
            for (number, offer) in state.view.changedOffers {
                guard let job = state.jobs[number] else { continue }
                if let offer {
                    let hasNewEvent = offer.isRepeat || changes.jobs[job.id]?.isNew ?? false
                    store(OpenJob(job, offer), hasNewEvent: hasNewEvent)
                } else {
                    // Its lease was undone.
                    state.jobs.remove(number)
                    if !withdraw(job.id) { changes.jobs[job.id] = JobChange(.deleted, isNew: false) }
                }
            }
        }
    }

    /// Records that a path was removed before an action received it.
    package mutating func recordGone(_ state: RuleState, _ path: PathBytes, wasHandled: Bool) {
        let event = FileEvent(
            kind: wasHandled ? .modified : .created, path: path, root: state.rule.root(matching: path) ?? path.parent,
            snapshot: .unseen, origin: .live, time: host.clock.time())
        let number = reconciler.shared.nextNumber()
        let job = Job(id: JobID(now: event.time), rule: state.rule.name, event: event, number: number)
        newJobs.insert(job.id)
        end(OpenJob(job, nil), .skipped, .gone)
        reportUnrun(job, state, .gone)
    }

    /// Ends a job in favor of a newer event; a job without attempts leaves no row.
    package mutating func recordSuperseded(_ state: RuleState, _ offer: Offer) {
        guard let job = state.jobs.remove(offer.number) else { return }
        if withdraw(job.id) {
            return report(.superseded(rule: state.rule.name, job: job.id, path: offer.path))
        }
        // A deletion that the rule receives is the newer event.
        let mayBeGone = !state.rule.events.contains(.deleted)
        let ended = end(outdated: job, state, mayBeGone: mayBeGone)
        guard ended.outcome.code == Outcome.replaced.code else { return report(.attempt(ended)) }
        report(.superseded(rule: state.rule.name, job: job.id, path: offer.path, ended: ended))
    }

    /// Ends a failed job that a user has retried although its event is no longer the last one of its path.
    package mutating func endOutdated(_ job: Job, _ state: RuleState) {
        state.jobs.remove(job.number)
        report(.attempt(end(outdated: job, state, mayBeGone: true)))
    }

    /// Ends a stored job because its file has changed or is gone.
    private mutating func end(outdated job: Job, _ state: RuleState, mayBeGone: Bool) -> AttemptReport {
        let files = WatchedPaths(roots: state.rule.roots, in: host.fileSystem)
        let isGone = mayBeGone && job.event.kind != .deleted && files.inspect(at: job.event.path) == .absent
        let outcome = isGone ? Outcome.gone : .replaced
        end(OpenJob(job, nil), .skipped, outcome)
        return unrun(job, state, outcome, .skipped)
    }

    /// Reports the end of a job that did not run.
    package func reportUnrun(_ job: Job, _ state: RuleState, _ outcome: Outcome, _ jobState: JobState = .skipped) {
        report(.attempt(unrun(job, state, outcome, jobState)))
    }

    private func unrun(_ job: Job, _ state: RuleState, _ outcome: Outcome, _ jobState: JobState) -> AttemptReport {
        AttemptReport(
            job, state.rule, attempt: max(0, job.attempt - 1), outcome, duration: .zero, jobState, pause: nil,
            hasStarted: false, at: host.clock.time())
    }

    /// Records and reports a wait if it is long; one without a known end is checked again when it becomes long.
    package func record(_ wait: inout GateWait, of event: FileEvent, _ state: RuleState) {
        let waiting = wait.waiting
        guard waiting.cause != .busy, waiting.cause != .loop else { return }
        let now = host.clock.time()
        let left = LongWaits.threshold - now.since(event.time)
        if wait.end == nil, left > .zero, let until = wait.until {
            wait.until = min(until, host.clock.now() + left)
        }
        let long = LongWait(
            rule: state.rule.name, path: event.path, waiting: waiting, since: event.time, until: wait.end)
        // An incomplete set is reported with all of its files.
        let isReported = waiting.cause == .group && wait.until == nil
        if state.waits.record(long, at: now), !isReported { report(.longWait(long)) }
    }

    // MARK: Queries

    /// The numbers of unfinished jobs, and the numbers of pending ones by rule; due paths count as pending.
    package func count() -> (jobs: EngineStatus.Queue, pending: [String: Int]) {
        var (jobs, byRule) = (EngineStatus.Queue(), [String: Int]())
        for state in rules.active {
            let waiting = state.view.retryingCount + state.jobs.waitingCount
            let pending = state.view.dueCount + waiting
            jobs.pending += pending
            jobs.running += state.jobs.count - waiting
            if pending > 0 { byRule[state.rule.name] = pending }
        }
        return (jobs, byRule)
    }

    /// Returns the interrupted actions that may have removed their input, by number.
    package func interrupted() -> [UInt64: (action: Action, job: Job)] {
        rules.active.reduce(into: [:]) { all, state in
            if state.jobs.isEmpty { return }
            all.merge(interrupted(state.view.interruptedOffers, state)) { $1 }
        }
    }

    /// Returns the interrupted actions of restored offers.
    package func interrupted(_ offers: [Offer], _ state: RuleState) -> [UInt64: (action: Action, job: Job)] {
        offers.reduce(into: [:]) { all, offer in
            guard offer.mayHaveRemovedInput, let job = state.jobs[offer.number],
                let action = state.rule.nextAction(of: job)
            else { return }
            all[offer.number] = (action, job)
        }
    }
}

extension Job {
    /// Removes the writing process from the event, unless the rule asks for it.
    fileprivate mutating func forgetWriter(unlessNeededBy rule: Rule) {
        if !rule.needsWriter, event.writer != .notAsked { event.writer = .notAsked }
    }
}

extension OpenJob {
    /// Whether a later success of the path means that the file is finished.
    ///
    /// That is not so for a piece of text, which no later job receives, nor for a file that was moved or copied away:
    /// its former name may now be that of another one.
    fileprivate var canBeSuperseded: Bool {
        let isAway = job.event.kind != .deleted && (offer?.hasRemovedInput == true || job.isSetAside)
        return job.event.tail == nil && !isAway
    }
}

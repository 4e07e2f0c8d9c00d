import FileEvents
import PluginProtocol
import Reconciling
import Rules
import Settling
import Storage
import System

/// The jobs of the running rules, and their changes that are not committed yet.
struct JobRegistry: ~Copyable {
    let engine: Engine
    var rules: RunningRules
    /// The changes that are not committed yet.
    var changes = TurnChanges()
    /// The jobs that have no row yet.
    private var newJobs: Set<JobID> = []
    /// The numbers of jobs that ended in this run.
    private var counts = JobCounts()
    /// The number of the last job.
    private var number: UInt64

    var host: Host { engine.host }

    init(_ engine: Engine, _ rules: [RuleState]) {
        self.engine = engine
        self.rules = RunningRules(engine.ruleset, rules)
        number = engine.store.stored.number
    }

    // MARK: Leases

    /// Leases a candidate.
    mutating func lease(
        _ candidate: Reconciler.Candidate, _ state: RuleState, _ reconciler: inout Reconciler
    ) -> Attempt.Input {
        var candidate = candidate
        if let age = state.gates.age { candidate.event = age.opened(candidate.event) }
        reconciler.shared.number = max(reconciler.shared.number, number)
        let offer = reconciler.views[candidate.view].lease(candidate)
        number = max(number, offer.number)
        let rule = state.rule
        var hasLostInput = false
        var job: Job
        if let known = state.jobs[offer.number]?.job {
            job = known
            // Finished steps of an earlier event do not count for another one.
            if offer.steps == 0 { job.steps = [] }
            hasLostInput = !job.keepSteps(of: rule)
        } else {
            job = Job(id: JobID(now: host.clock.time()), rule: rule.name, event: offer.event)
            newJobs.insert(job.id)
        }
        // The rule may have had another name.
        job.rule = rule.name
        job.event = offer.event
        if !rule.needsWriter { job.event.writer = .notAsked }
        job.attempt += 1
        job.waiting = nil
        if offer.isRepeat || job.attempt == 1 && offer.followsUnknownState {
            job.isInterrupted = true
        }
        job.mayHaveRunBefore = offer.isUncertain || offer.isInterrupted
        reconciler.views[state.index].update(offer.number) { offer in
            offer.steps = job.steps.count
            offer.mayRemoveInput = rule.mayRemoveInput(job)
        }
        state.jobs.insert(JobTable.Entry(job: job, number: offer.number))
        let hasStarted = offer.mayHaveStarted && job.previous?.isUnstarted != true || offer.steps > 0
        return Attempt.Input(
            job: job, number: offer.number, hasStartedBefore: hasStarted,
            isInterrupted: offer.isInterrupted || offer.steps > 0,
            mayBeDone: offer.hasRemovedInput || offer.isInterrupted && offer.mayRemoveInput,
            isCertain: !offer.isUncertain, hasLostInput: hasLostInput)
    }

    /// Leases a due stored job.
    ///
    /// - Returns: Nil if it ends without running.
    mutating func lease(
        _ entry: JobTable.Entry, _ state: RuleState, _ reconciler: inout Reconciler, at time: GateTime
    ) -> Attempt.Input? {
        var job = entry.job
        job.mayHaveRunBefore = job.isInterrupted
        job.attempt += 1
        job.waiting = nil
        job.rule = state.rule.name
        // A user names a file, not its content at that time.
        if job.event.origin == .manual, case .present(let snapshot) = time.files.inspect(at: job.event.path) {
            job.event.snapshot = snapshot
        }
        let hasLostInput = !job.keepSteps(of: state.rule)
        let input = Attempt.Input(
            job: job, number: entry.number, isStored: true, hasStartedBefore: entry.job.hasStarted,
            hasLostInput: hasLostInput)
        state.jobs.update(entry.number) { entry in
            entry.job = job
            entry.schedule?.isRunning = true
        }
        guard let outcome = job.interruptedTooOften(state.rule.retry) else { return input }
        endUnrun(input, state, outcome, &reconciler, at: time.now)
        return nil
    }

    /// Stores a job whose event is not compared with the ledger.
    mutating func store(
        _ event: FileEvent, _ state: RuleState, id: JobID? = nil, isInterrupted: Bool = false, after: UInt64 = 0,
        at now: ContinuousClock.Instant
    ) {
        number += 1
        let rule = state.rule
        var job = Job(id: id ?? JobID(now: event.time), rule: rule.name, event: event)
        if !rule.needsWriter { job.event.writer = .notAsked }
        job.isInterrupted = isInterrupted
        newJobs.insert(job.id)
        rules.insert(job, number, JobTable.Schedule(due: now, after: after), state)
    }

    // MARK: Rows

    /// Stores an unfinished job.
    mutating func store(_ job: StoredJob, hasNewEvent: Bool = false) {
        changes.jobs[job.job.id] = JobChange(.unfinished(job), isNew: hasNewEvent || newJobs.contains(job.job.id))
    }

    /// Stores the end of a job.
    mutating func end(_ job: StoredJob, _ outcome: Outcome) {
        changes.jobs[job.job.id] = JobChange(.ended(job, outcome), isNew: newJobs.contains(job.job.id))
        switch job.state {
        case .succeeded: counts.succeeded += 1
        case .failed: counts.failed += 1
        default: counts.skipped += 1
        }
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
    ///   - reconciler: The reconciler, which has received all hints that were queued when the result arrived.
    ///   - now: The current time.
    mutating func end(
        _ number: UInt64, _ state: RuleState, _ jobState: JobState, _ outcome: Outcome, of batch: JobID? = nil,
        isUntouched: Bool = false, _ reconciler: inout Reconciler, at now: ContinuousClock.Instant
    ) {
        guard let entry = state.jobs.remove(number) else { return }
        let index = state.index
        var stored = StoredJob(entry.job, jobState, reconciler.views[index].offer(number), number: number)
        stored.setBatch(batch)
        end(stored, outcome)
        let termination = Reconciler.Termination(jobState, outcome)
        if entry.isStored {
            reconciler.views[index].endFrozen(entry.job.event, termination, at: now)
        } else if termination == .gone, isUntouched {
            reconciler.views[index].withdraw(number, isReported: true, at: now)
        } else {
            reconciler.views[index].finish(number, termination, at: now)
        }
    }

    /// Ends a leased job without running it.
    mutating func endUnrun(
        _ input: Attempt.Input, _ state: RuleState, _ outcome: Outcome, _ reconciler: inout Reconciler,
        at now: ContinuousClock.Instant
    ) {
        end(input.number, state, .failed, outcome, &reconciler, at: now)
        reportUnrun(input.job, state, outcome, .failed)
    }

    /// Removes the row of a job that is not committed yet; returns false if the job has a committed row.
    private mutating func withdraw(_ id: JobID) -> Bool {
        guard newJobs.remove(id) != nil else { return false }
        changes.jobs[id] = nil
        return true
    }

    /// The changes to commit: of jobs, of the ledger and of due paths.
    func changes(of reconciler: borrowing Reconciler) -> TurnChanges {
        var changes = changes
        for (rule, rows) in reconciler.shared.ledger.changes { changes.rows[rule, default: [:]].merge(rows) { $1 } }
        changes.due = reconciler.shared.dueChanges
        return changes
    }

    mutating func markCommitted() {
        changes = TurnChanges()
        newJobs = []
        rules.forgetIdle()
    }

    // MARK: Effects of the reconciler

    /// Collects the rows of changed jobs for the commit.
    mutating func collect(_ reconciler: borrowing Reconciler) {
        for state in rules.active(reconciler) {
            for entry in state.jobs.takeChanged() {
                guard let schedule = entry.schedule else { continue }
                let (state, due): (JobState, _) = schedule.isRunning ? (.running, nil) : (.pending, schedule.due)
                store(StoredJob(entry.job, state, nil, number: entry.number, due: due))
            }
            for (number, offer) in reconciler.views[state.index].changedOffers {
                guard let job = state.jobs[number]?.job else { continue }
                if let offer {
                    store(job, offer, number)
                } else {
                    // Its lease was undone.
                    state.jobs.remove(number)
                    if !withdraw(job.id) { changes.jobs[job.id] = JobChange(.deleted, isNew: false) }
                }
            }
        }
    }

    private mutating func store(_ job: Job, _ offer: Offer, _ number: UInt64) {
        var due: ContinuousClock.Instant?
        if case .retrying(let time) = offer.state { due = time }
        let hasNewEvent = changes.jobs[job.id]?.isNew ?? false
        store(
            StoredJob(job, due == nil ? .running : .pending, offer, number: number, due: due),
            hasNewEvent: hasNewEvent || offer.isRepeat)
    }

    /// Records that a path was removed before an action received it.
    mutating func recordGone(_ state: RuleState, _ path: PathBytes, wasHandled: Bool) {
        let event = FileEvent(
            kind: wasHandled ? .modified : .created, path: path, root: state.rule.root(matching: path) ?? path.parent,
            snapshot: .unseen, origin: .live, time: host.clock.time())
        let job = Job(id: JobID(now: event.time), rule: state.rule.name, event: event)
        number += 1
        newJobs.insert(job.id)
        end(StoredJob(job, .skipped, nil, number: number), .gone)
        reportUnrun(job, state, .gone)
    }

    /// Ends a job in favor of a newer event; a job without attempts leaves no row.
    mutating func recordSuperseded(_ state: RuleState, _ offer: Offer) {
        guard let job = state.jobs.remove(offer.number)?.job else { return }
        if withdraw(job.id) {
            return engine.report(.superseded(rule: state.rule.name, job: job.id, path: offer.path))
        }
        // A deletion that the rule receives is the newer event.
        let mayBeGone = !state.rule.events.contains(.deleted)
        let ended = end(outdated: job, offer.number, state, mayBeGone: mayBeGone)
        guard ended.outcome.code == Outcome.replaced.code else { return engine.report(.attempt(ended)) }
        engine.report(.superseded(rule: state.rule.name, job: job.id, path: offer.path, ended: ended))
    }

    /// Ends a failed job that a user has retried although its event is no longer the last one of its path.
    mutating func endOutdated(_ stored: StoredJob, _ state: RuleState) {
        state.jobs.remove(stored.number)
        engine.report(.attempt(end(outdated: stored.job, stored.number, state, mayBeGone: true)))
    }

    /// Ends a stored job because its file has changed or is gone.
    private mutating func end(outdated job: Job, _ number: UInt64, _ state: RuleState, mayBeGone: Bool) -> AttemptReport
    {
        let files = WatchedPaths(roots: state.rule.roots, in: host.fileSystem)
        let isGone = mayBeGone && job.event.kind != .deleted && files.inspect(at: job.event.path) == .absent
        let outcome = isGone ? Outcome.gone : .replaced
        end(StoredJob(job, .skipped, nil, number: number), outcome)
        return unrun(job, state, outcome, .skipped)
    }

    /// Reports the end of a job that did not run.
    func reportUnrun(_ job: Job, _ state: RuleState, _ outcome: Outcome, _ jobState: JobState = .skipped) {
        engine.report(.attempt(unrun(job, state, outcome, jobState)))
    }

    private func unrun(_ job: Job, _ state: RuleState, _ outcome: Outcome, _ jobState: JobState) -> AttemptReport {
        AttemptReport(
            job, state.rule, attempt: max(0, job.attempt - 1), outcome, duration: .zero, jobState, pause: nil,
            hasStarted: false, at: host.clock.time())
    }

    // MARK: Queries

    /// The numbers of jobs by state, and the numbers of pending jobs by rule; due paths count as pending.
    func count(_ reconciler: borrowing Reconciler) -> (jobs: JobCounts, pending: [String: Int]) {
        var (jobs, byRule) = (counts, [String: Int]())
        for state in rules.active(reconciler) {
            let waiting = reconciler.views[state.index].retryingCount + state.jobs.waitingCount
            let pending = reconciler.views[state.index].dueCount + waiting
            jobs.pending += pending
            jobs.running += state.jobs.count - waiting
            if pending > 0 { byRule[state.rule.name] = pending }
        }
        return (jobs, byRule)
    }

    /// Returns the interrupted actions that may have removed their input, by number.
    func interrupted(_ reconciler: borrowing Reconciler) -> [UInt64: (action: Action, job: Job)] {
        reconciler.shared.active.reduce(into: [:]) { all, view in
            if rules[view].jobs.isEmpty { return }
            all.merge(interrupted(reconciler.views[view].interruptedOffers, rules[view])) { $1 }
        }
    }

    /// Returns the interrupted actions of restored offers.
    func interrupted(_ offers: [Offer], _ state: RuleState) -> [UInt64: (action: Action, job: Job)] {
        offers.reduce(into: [:]) { all, offer in
            guard offer.mayHaveRemovedInput, let job = state.jobs[offer.number]?.job,
                let action = state.rule.nextAction(of: job)
            else { return }
            all[offer.number] = (action, job)
        }
    }
}

extension StoredJob {
    /// Sets ``failedWith`` if a later success of the path means that the file is finished.
    ///
    /// That is not so for a piece of text, which no later job receives, nor for a file that was moved or copied away:
    /// its former name may now be that of another one.
    mutating func setBatch(_ first: JobID?) {
        let isAway = job.event.kind != .deleted && (offer?.hasRemovedInput == true || job.isSetAside)
        guard state == .failed, job.event.tail == nil, !isAway else { return }
        failedWith = first ?? job.id
    }
}

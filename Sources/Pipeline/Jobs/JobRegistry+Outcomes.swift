package import FileEvents
import Gates
package import Monitoring
import PluginProtocol
import Reconciling
package import Records
package import Rules
import System

// The steps and the outcomes of attempts.
extension JobRegistry {
    /// One job at the end of an attempt.
    fileprivate struct EndedAttempt {
        var part: AttemptPart
        var state: RuleState
        var started: Timestamp
        var duration: Duration
        /// The number from 0 to 1 for the pause before the next attempt, if several jobs share it.
        var random: Double?
        /// Whether the attempt was stopped for a newer event.
        var wasRestarted: Bool
        var now: ContinuousClock.Instant
        /// The first job of the attempt.
        var batch: JobID

        var job: Job { part.job }
        var number: UInt64 { part.job.number }
    }

    /// Records the steps of a running job that have succeeded.
    package mutating func record(_ steps: [FinishedStep], _ number: UInt64, _ state: RuleState) {
        guard var job = state.jobs[number] else { return }
        for step in steps.dropFirst(job.finishedSteps.count) {
            var step = step
            step.hasRemovedInput =
                !job.isStored && state.rule.mayRemoveInput(job) && !state.view.hasSameFile(of: number)
            state.view.finishStep(number, removedInput: step.hasRemovedInput)
            job.finishedSteps.append(step)
            job.isInterrupted = false
            let mayRemove = state.rule.mayRemoveInput(job)
            state.view.update(number) { $0.mayRemoveInput = mayRemove }
        }
        state.jobs.update(number) { $0 = job }
    }

    /// Records the result of an attempt.
    ///
    /// - Returns: The reports of the jobs whose actions have started, unless `on_failure` follows: those are reported
    ///   when it is finished.
    package mutating func record(
        _ result: AttemptResult, _ state: RuleState, wasRestarted: Bool, at now: ContinuousClock.Instant
    ) -> [AttemptReport] {
        let isCollected = result.rule.value.isCollected
        // Jobs that ran together and failed together are retried together.
        let random = isCollected ? host.random() : nil
        return result.parts.compactMap { part in
            let ended = EndedAttempt(
                part: part, state: state, started: result.started,
                // Brief jobs that ran in one attempt are each assigned a part of the time.
                duration: isCollected ? result.duration : result.duration / result.parts.count,
                random: random, wasRestarted: wasRestarted, now: now,
                batch: isCollected ? result.parts[0].job.id : part.job.id)
            return record(ended)
        }
    }

    /// Records the end of one job of an attempt.
    ///
    /// - Returns: Nil if its action has not started, or if its outcome is reported when `on_failure` is finished.
    private mutating func record(_ ended: EndedAttempt) -> AttemptReport? {
        let state = ended.state
        if let seen = ended.part.seen { state.view.recordSeen(seen, by: ended.number) }
        switch ended.part.termination {
        case .waiting(let waiting, let pause): postpone(ended, waiting, until: ended.now + pause)
        case .gone, .changed:
            if case .changed = ended.part.termination {
                report(.superseded(rule: state.rule.name, job: ended.job.id, path: ended.job.event.path))
            }
            state.jobs.update(ended.number) { $0.attempt -= 1 }
            state.view.withdraw(ended.number, at: ended.now)
        case .outcome(var outcome):
            if ended.wasRestarted, outcome.isInterrupted {
                outcome.message = "stopped, because the file changed while it ran"
                outcome.code = "restarted"
            }
            return record(ended, outcome)
        }
        return nil
    }

    private mutating func postpone(_ ended: EndedAttempt, _ waiting: Waiting, until time: ContinuousClock.Instant) {
        let (state, number) = (ended.state, ended.number)
        let path = ended.job.event.path
        let gate =
            waiting.cause == .group
            ? state.rule.groupGate(of: path) : state.gates.ready?.gate(of: path, waiting) ?? ReadyGate.gate(path)
        var wait = GateWait(gate: gate, until: time, waiting: waiting)
        record(&wait, of: ended.job.event, state)
        let time = wait.until ?? time
        state.jobs.update(number) { job in
            job.attempt -= 1
            job.waiting = waiting
            job.schedule?.putBack(until: time)
        }
        state.view.postpone(number, for: gate, until: time, wait.reason)
    }

    private mutating func record(_ ended: EndedAttempt, _ outcome: Outcome) -> AttemptReport? {
        let (state, job) = (ended.state, ended.job)
        let rule = state.rule
        if ended.part.hasStarted, !outcome.isInterrupted { state.gates.recordEnd(of: job.event.path, at: ended.now) }
        chains.end(job.id, at: host.clock.time())
        for output in outcome.outputs { chains.add(output, of: job.event.path) }
        for output in ended.part.outputs.sorted() { state.view.recordOwnWrite(output, of: ended.number) }
        let record = AttemptRecord(of: ended.part, outcome, ended.started, ended.duration)
        let time = host.clock.time()
        let fate = Fate(of: outcome, job, rule, random: ended.random ?? host.random(), at: time)
        if let unreported = job.givenUp(record, rule) {
            giveUp(ended, outcome, unreported)
            return nil
        }
        changes.attempts.append((job.id, record))
        apply(fate, outcome, of: ended)
        return AttemptReport(
            job, rule, attempt: job.attempt, outcome, duration: record.duration, fate.state, pause: fate.pause,
            hasStarted: ended.part.hasStarted, at: time)
    }

    /// Commits that a job was given up, or that its `on_failure` was interrupted; `on_failure` then starts or
    /// resumes.
    private mutating func giveUp(_ ended: EndedAttempt, _ outcome: Outcome, _ job: Job) {
        let (state, number) = (ended.state, ended.number)
        recordEffects(ended, outcome, mayHaveRemoved: false)
        let mayRemove = state.rule.mayRemoveInput(job)
        state.view.update(number) { $0.mayRemoveInput = mayRemove }
        state.jobs.update(number) { current in
            current.failure = current.failure ?? job.failure
            (current.previous, current.isInterrupted) = (job.previous, job.isInterrupted)
        }
    }

    /// Records the steps of an attempt, and whether it has removed the file or may have removed it.
    private mutating func recordEffects(_ ended: EndedAttempt, _ outcome: Outcome, mayHaveRemoved: Bool) {
        let digest = ended.job.event.snapshot.digest
        ended.state.view.update(ended.number) { offer in
            if let digest { offer.event.snapshot.digest = digest }
            if ended.part.hasRemovedInput { offer.hasRemovedInput = true }
            // Applies until the step has succeeded, since a later attempt does not show what this one has done.
            if ended.part.hasStarted, outcome.isInterrupted || outcome.isUncertain || mayHaveRemoved {
                offer.interrupt()
            }
        }
        ended.state.jobs.update(ended.number) { job in
            // Only the end of an attempt at a stored job shows which step has removed the file.
            let known = job.isStored ? 0 : job.finishedSteps.count
            job.finishedSteps.replaceSubrange(known..., with: ended.part.steps.dropFirst(known))
            job.event.snapshot.digest = digest
        }
    }

    private mutating func apply(_ fate: Fate, _ outcome: Outcome, of ended: EndedAttempt) {
        let (state, number, now) = (ended.state, ended.number, ended.now)
        // A built-in step that has failed may have removed the file.
        let step = state.rule.actions.dropFirst(ended.job.steps.count).first
        let mayHaveRemoved = outcome.result == .retry && step?.traits.contains(.removesInput) ?? false
        recordEffects(ended, outcome, mayHaveRemoved: mayHaveRemoved)
        switch fate {
        case .again(let pause, let counts):
            state.jobs.update(number) { job in
                job.putBack(outcome, counts: counts)
                job.schedule?.putBack(until: now + pause)
            }
            let isOvertaken = ended.wasRestarted && outcome.isInterrupted
            let termination = isOvertaken ? Reconciler.Termination.overtaken : .retry(at: now + pause, counts: counts)
            state.view.finish(number, termination, at: now)
        case .ended(let jobState):
            if jobState == .succeeded, ended.job.event.origin == .manual { state.view.recordApplied(ended.job.event) }
            if jobState == .failed, outcome.isCut { state.jobs.update(number) { $0.isInterrupted = true } }
            let isUntouched = !ended.part.input.hasStartedBefore && ended.job.steps.isEmpty
            end(number, state, jobState, outcome, of: ended.batch, isUntouched: isUntouched, at: now)
        }
    }

    // MARK: Rules that no longer run

    /// Records the result of an attempt whose rule no longer runs, or was removed in the meantime and added again.
    ///
    /// Its files are no longer watched, so the received state is certain only if they are as offered.
    package mutating func recordRetired(_ result: AttemptResult, _ id: RuleID) {
        let files = WatchedPaths(roots: result.parts.map(\.job.event.root), in: host.fileSystem)
        for part in result.parts {
            guard case .outcome(let outcome) = part.termination else {
                pauseRetired(part, Outcome(.retry, "its rule was removed before it started"), counts: false)
                continue
            }
            let time = host.clock.time()
            let fate = Fate(of: outcome, part.job, result.rule.value, random: 0, at: time)
            let record = AttemptRecord(of: part, outcome, result.started, result.duration)
            if let job = part.job.givenUp(record, result.rule.value) {
                storeRetired(job, part.input, wasCut: false)
                continue
            }
            let attempt = AttemptReport(
                part.job, result.rule.value, attempt: part.job.attempt, outcome, duration: record.duration, fate.state,
                pause: nil, hasStarted: part.hasStarted, at: time)
            report(.attempt(attempt))
            changes.attempts.append((part.job.id, record))
            switch fate {
            case .again(_, let counts): pauseRetired(part, outcome, counts: counts)
            case .ended(let state):
                end(
                    OpenJob(part.job, nil), state, outcome,
                    of: result.rule.value.isCollected ? result.parts[0].job.id : nil)
                if !part.job.isStored { setHandled(part.job.event, of: id, files) }
            }
        }
    }

    /// Stores a job for the next run of its rule.
    private mutating func pauseRetired(_ part: AttemptPart, _ outcome: Outcome, counts: Bool) {
        var job = part.job
        job.putBack(outcome, counts: counts)
        storeRetired(job, part.input, wasCut: outcome.isInterrupted)
    }

    private mutating func storeRetired(_ job: Job, _ input: OpenJob, wasCut: Bool) {
        var (job, offer) = (job, input.offer)
        let now = host.clock.now()
        job.schedule?.putBack(until: now)
        offer?.state = .retrying(now)
        if wasCut { offer?.interrupt() }
        store(OpenJob(job, offer))
    }

    private mutating func setHandled(_ event: FileEvent, of id: RuleID, _ files: WatchedPaths) {
        let isAsOffered =
            switch files.inspect(at: event.path) {
            case .absent: event.kind == .deleted
            case .present(let now): now.identity == event.snapshot.identity && now.changed == event.snapshot.changed
            case .unreadable: false
            }
        changes.setHandled(event, of: id, isAsOffered ? .certain : .uncertain)
    }
}

extension TurnChanges {
    /// Sets the rows of the paths of an event whose rule does not run.
    package mutating func setHandled(_ event: FileEvent, of rule: RuleID, _ trust: LedgerRow.Trust = .certain) {
        rows[rule, default: [:]][event.path] = LedgerRow(event.kind == .deleted ? nil : event.snapshot, trust)
        if let from = event.from { rows[rule, default: [:]][from] = LedgerRow() }
    }
}

extension AttemptRecord {
    /// Creates the record of a finished job; for a job that was given up, of the attempt together with its
    /// `on_failure`.
    fileprivate init(of part: AttemptPart, _ outcome: Outcome, _ started: Timestamp, _ duration: Duration) {
        let first = part.job.failure?.attempt
        self.init(
            number: part.job.attempt, started: first?.started ?? started,
            duration: (first?.duration ?? .zero) + duration, outcome: outcome)
        self.outcome.changes = part.changes
    }
}

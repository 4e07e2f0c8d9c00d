import ActionAPI
import FileEvents
import PluginProtocol
import Reconciling
import Rules
import Settling
import Storage
import System

// Results of attempts, and jobs that finish without one.
extension Dispatcher {
    /// Records the steps of a running job that have succeeded.
    ///
    /// - Parameters:
    ///   - steps: All finished steps.
    ///   - outputs: The paths that the last step has written.
    ///   - id: The job.
    ///   - reconciler: The reconciler, which has received all hints.
    mutating func record(
        _ steps: [FinishedStep], writing outputs: Set<PathBytes>, of id: JobID, _ reconciler: inout Reconciler
    ) {
        guard let (index, number, isFrozen) = find(id) else { return }
        for output in outputs.sorted() { reconciler.views[index].recordOwnWrite(output, of: number) }
        guard isFrozen else { return recordSteps(steps, number, index, &reconciler) }
        rules[index].frozen[number]?.job.finishedSteps = steps
        storeFrozen(number, index)
    }

    /// Blocks a path that the running step of a job is about to write.
    func declare(_ path: PathBytes, of id: JobID, _ reconciler: inout Reconciler) {
        guard let (index, number, isFrozen) = find(id), !isFrozen else { return }
        reconciler.views[index].declareOutput(number, path)
    }

    private mutating func recordSteps(
        _ steps: [FinishedStep], _ number: UInt64, _ index: Int, _ reconciler: inout Reconciler
    ) {
        let rule = rules[index].rule
        guard var job = rules[index].jobs[number] else { return }
        for step in steps.dropFirst(job.finishedSteps.count) {
            var step = step
            step.hasRemovedInput = rule.mayRemoveInput(job) && !reconciler.views[index].hasKeptFile(of: number)
            reconciler.views[index].finishStep(number, removedInput: step.hasRemovedInput)
            job.finishedSteps.append(step)
            let mayRemove = rule.mayRemoveInput(job)
            reconciler.views[index].update(number) { $0.mayRemoveInput = mayRemove }
        }
        rules[index].jobs[number] = job
    }

    /// Records the result of an attempt.
    ///
    /// All hints that were queued when the result arrived must be received before.
    mutating func record(_ result: Attempt.Result, _ reconciler: inout Reconciler, at now: ContinuousClock.Instant) {
        guard let first = result.parts.first?.job else { preconditionFailure("an attempt at no job") }
        lanes.end(first.id, at: now)
        uses.remove(result.parts.flatMap(\.input.paths))
        let attempt = running.removeValue(forKey: first.id)
        recordEnd(of: result, at: now)
        guard let id = attempt?.rule, let index = index(of: id), knows(result.parts[0].input.number, index) else {
            if let id = attempt?.rule { endRetired(result, id) }
            for part in result.parts { wake(part.input.paths, &reconciler) }
            return
        }
        takeBackCount(of: result, index)
        let wasRestarted = attempt?.stop?.isRaised ?? false
        let isCollected = result.rule.isCollected
        // Brief jobs that ran in one attempt are each assigned a part of the time.
        let duration = isCollected ? result.duration : result.duration / result.parts.count
        // Jobs that ran together and failed together are retried together.
        let random = host.random()
        var reports: [AttemptReport] = []
        for part in result.parts {
            let chance = isCollected ? random : host.random()
            let ended = ProgramResult(
                part: part, index: index, started: result.started, duration: duration, random: chance,
                wasRestarted: wasRestarted, now: now)
            if let line = record(ended, &reconciler) { reports.append(line) }
            wake(part.input.paths, &reconciler)
        }
        queueGivenUp(result.parts.map { ($0.input.number, $0.input.isFrozen) }, index)
        if reports.count > 1, isCollected {
            report(.batch(reports))
        } else {
            for line in reports { report(.attempt(line)) }
        }
        guard first.failure == nil else { return }
        recordBrief(result, index)
        recordSigns(of: result, index, at: now)
    }

    /// Wakes the jobs that wait for paths on which an action has worked.
    private func wake(_ paths: [PathBytes], _ reconciler: inout Reconciler) {
        for path in paths { reconciler.wake(Self.busy(path)) }
    }

    /// One job at the end of an attempt.
    private struct ProgramResult {
        var part: Attempt.Part
        var index: Int
        var started: Timestamp
        var duration: Duration
        var random: Double
        var wasRestarted: Bool
        var now: ContinuousClock.Instant

        var job: Job { part.job }
        var number: UInt64 { part.input.number }
    }

    /// Records the end of one job of an attempt; returns nil if its action has not started.
    private mutating func record(_ ended: ProgramResult, _ reconciler: inout Reconciler) -> AttemptReport? {
        switch ended.part.termination {
        case .waiting(let waiting, let pause): postpone(ended, waiting, until: ended.now + pause, &reconciler)
        case .gone, .changed:
            if case .changed = ended.part.termination {
                report(.superseded(rule: rules[ended.index].rule.name, job: ended.job.id, path: ended.job.event.path))
            }
            rules[ended.index].jobs[ended.number]?.attempt -= 1
            reconciler.views[ended.index].withdraw(ended.number, at: ended.now)
        case .outcome(var outcome):
            if ended.wasRestarted, outcome.isInterrupted {
                outcome.message = "stopped, because the file changed while it ran"
                outcome.code = "restarted"
            }
            return record(ended, outcome, &reconciler)
        }
        return nil
    }

    /// Returns the attempt of a finished job; for a job that was given up, the attempt together with its
    /// `on_failure`.
    private func record(of part: Attempt.Part, _ outcome: Outcome, _ started: Timestamp, _ duration: Duration)
        -> AttemptRecord
    {
        let first = part.job.failure?.attempt
        var record = AttemptRecord(
            number: part.job.attempt, started: first?.started ?? started,
            duration: (first?.duration ?? .zero) + duration, outcome: outcome)
        record.outcome.changes = part.changes
        return record
    }

    private mutating func postpone(
        _ ended: ProgramResult, _ waiting: Waiting, until time: ContinuousClock.Instant, _ reconciler: inout Reconciler
    ) {
        let (index, number) = (ended.index, ended.number)
        if ended.part.input.isFrozen {
            rules[index].frozen[number]?.isRunning = false
            rules[index].frozen[number]?.job.attempt -= 1
            rules[index].frozen[number]?.due = time
            rules[index].frozen[number]?.job.waiting = waiting
            return storeFrozen(number, index)
        }
        let path = ended.job.event.path
        rules[index].jobs[number]?.attempt -= 1
        rules[index].jobs[number]?.waiting = waiting
        let marker = waiting.cause == .doneFile ? rules[index].gates.ready?.ready.marker(of: path) : nil
        let gate =
            waiting.cause == .group ? groupGate(of: path, rules[index].rule) : ReadyGate.gate(marker ?? path)
        reconciler.views[index].postpone(number, for: gate, until: time, waiting.reason)
    }

    /// Records the outcome of one job of an attempt; returns nil if it is reported when `on_failure` is finished.
    private mutating func record(
        _ ended: ProgramResult, _ outcome: Outcome, _ reconciler: inout Reconciler
    ) -> AttemptReport? {
        let (index, job, now) = (ended.index, ended.job, ended.now)
        let rule = rules[index].rule
        if ended.part.hasStarted, !outcome.isInterrupted {
            rules[index].gates.cooldown?.times.note(job.event.path, at: now)
        }
        for output in ended.part.outputs.sorted() { reconciler.views[index].recordOwnWrite(output, of: ended.number) }
        let record = record(of: ended.part, outcome, ended.started, ended.duration)
        let fate = fate(of: outcome, job, rule, random: ended.random)
        if let unreported = job.givenUp(record, rule) {
            giveUp(ended, outcome, unreported, &reconciler)
            return nil
        }
        changes.attempts.append((job.id, record))
        if ended.part.input.isFrozen {
            recordFrozen(ended, outcome, fate, &reconciler)
        } else {
            recordOffer(ended, outcome, fate, &reconciler)
        }
        return AttemptReport(
            job, rule, attempt: job.attempt, outcome, duration: record.duration, fate.state, pause: fate.pause,
            at: host.clock.time())
    }

    /// Commits that a job was given up, or that its `on_failure` was interrupted; `on_failure` then starts or
    /// resumes.
    private mutating func giveUp(
        _ ended: ProgramResult, _ outcome: Outcome, _ job: Job, _ reconciler: inout Reconciler
    ) {
        let (index, number) = (ended.index, ended.number)
        guard !ended.part.input.isFrozen else {
            rules[index].frozen[number]?.job = job
            return storeFrozen(number, index)
        }
        recordEffects(ended, outcome, mayHaveRemoved: false, &reconciler)
        let mayRemove = rules[index].rule.mayRemoveInput(job)
        reconciler.views[index].update(number) { $0.mayRemoveInput = mayRemove }
        guard var known = rules[index].jobs[number] else { return }
        known.failure = known.failure ?? job.failure
        (known.previous, known.isInterrupted) = (job.previous, job.isInterrupted)
        rules[index].jobs[number] = known
    }

    /// Records the steps of an attempt, and whether it has removed the file or may have removed it.
    private mutating func recordEffects(
        _ ended: ProgramResult, _ outcome: Outcome, mayHaveRemoved: Bool, _ reconciler: inout Reconciler
    ) {
        let (index, number) = (ended.index, ended.number)
        reconciler.views[index].update(number) { offer in
            if let digest = ended.job.event.snapshot.digest { offer.event.snapshot.digest = digest }
            if ended.part.hasRemovedInput { offer.hasRemovedInput = true }
            // Applies until the step has succeeded, since a later attempt does not show what this one has done.
            if ended.part.hasStarted, outcome.isInterrupted || outcome.isUncertain || mayHaveRemoved {
                offer.isInterrupted = true
            }
        }
        guard var job = rules[index].jobs[number] else { return }
        job.finishedSteps += ended.job.finishedSteps.dropFirst(job.finishedSteps.count)
        job.event.snapshot.digest = ended.job.event.snapshot.digest
        rules[index].jobs[number] = job
    }

    private mutating func recordOffer(
        _ ended: ProgramResult, _ outcome: Outcome, _ fate: Fate, _ reconciler: inout Reconciler
    ) {
        let (index, number, now) = (ended.index, ended.number, ended.now)
        // A built-in step that has failed may have removed the file.
        let step = rules[index].rule.actions.dropFirst(ended.job.steps.count).first
        let mayHaveRemoved = outcome.ending == .retry && step?.traits.contains(.removesInput) ?? false
        recordEffects(ended, outcome, mayHaveRemoved: mayHaveRemoved, &reconciler)
        switch fate {
        case .again(let pause, let counts):
            rules[index].jobs[number]?.putBack(outcome, counts: counts)
            let isOvertaken = ended.wasRestarted && outcome.isInterrupted
            reconciler.views[index].finish(
                number, isOvertaken ? .overtaken : .retry(at: now + pause, counts: counts), at: now)
        case .ended(let state):
            end(number, index, state, outcome, reconciler)
            let termination = termination(of: outcome, state)
            if termination == .gone, !ended.part.input.hasStartedBefore, ended.job.steps.isEmpty {
                reconciler.views[index].withdraw(number, isReported: true, at: now)
            } else {
                reconciler.views[index].finish(number, termination, at: now)
            }
        }
    }

    private func termination(of outcome: Outcome, _ state: JobState) -> Reconciler.Termination {
        switch (state, outcome.code) {
        case (.failed, _): .gaveUp
        case (.skipped, "gone"): .gone
        case (.skipped, "where"), (.skipped, "path"): .refused
        default: .succeeded
        }
    }

    /// Records the end of a job with an offer.
    mutating func end(
        _ number: UInt64, _ index: Int, _ state: JobState, _ outcome: Outcome, _ reconciler: borrowing Reconciler
    ) {
        guard let job = rules[index].jobs.removeValue(forKey: number) else { return }
        let offer = reconciler.views[index].offer(number)
        end(StoredJob(job, state, offer, number: number), outcome)
    }

    private mutating func end(_ job: StoredJob, _ outcome: Outcome) {
        changes.jobs[job.job.id] = JobChange(.ended(job, outcome), isNew: newJobs.contains(job.job.id))
        switch job.state {
        case .succeeded: counts.succeeded += 1
        case .failed: counts.failed += 1
        default: counts.skipped += 1
        }
    }

    // MARK: Frozen jobs

    private mutating func recordFrozen(
        _ ended: ProgramResult, _ outcome: Outcome, _ fate: Fate, _ reconciler: inout Reconciler
    ) {
        let (index, number) = (ended.index, ended.number)
        rules[index].frozen[number]?.job.finishedSteps = ended.job.finishedSteps
        switch fate {
        case .again(let pause, let counts):
            rules[index].frozen[number]?.job.putBack(outcome, counts: counts)
            rules[index].frozen[number]?.isRunning = false
            rules[index].frozen[number]?.due = ended.now + pause
            storeFrozen(number, index)
        case .ended(let state):
            if state == .succeeded, ended.job.event.origin == .manual {
                reconciler.views[index].recordApplied(ended.job.event)
            }
            endFrozen(ended.part.input, index, state, outcome, &reconciler, at: ended.now)
        }
    }

    mutating func endFrozen(
        _ input: Attempt.Input, _ index: Int, _ state: JobState, _ outcome: Outcome, _ reconciler: inout Reconciler,
        at now: ContinuousClock.Instant
    ) {
        guard let entry = rules[index].frozen[input.number] else { return }
        reconciler.views[index].endFrozen(entry.job.event, termination(of: outcome, state), at: now)
        rules[index].frozen.remove(input.number)
        end(StoredJob(entry.job, state, nil, number: input.number), outcome)
    }

    mutating func storeFrozen(_ number: UInt64, _ index: Int) {
        guard let entry = rules[index].frozen[number] else { return }
        let stored = StoredJob(
            entry.job, entry.isRunning ? .running : .pending, nil, number: number,
            due: entry.isRunning ? nil : entry.due)
        changes.jobs[entry.job.id] = JobChange(.unfinished(stored), isNew: newJobs.contains(entry.job.id))
    }

    // MARK: Jobs that do not run

    /// Ends a leased job as failed without running it.
    mutating func endUnrun(
        _ input: Attempt.Input, _ index: Int, _ outcome: Outcome, _ reconciler: inout Reconciler,
        at now: ContinuousClock.Instant
    ) {
        let state: JobState = outcome.ending == .skipped ? .skipped : .failed
        end(input.number, index, state, outcome, reconciler)
        reconciler.views[index].finish(input.number, state == .failed ? .gaveUp : .succeeded, at: now)
        reportUnrun(input.job, index, outcome, state)
    }

    /// Returns the outcome of a job that has exceeded the limit of the loop guard.
    static func loop(_ what: String, _ limit: Int) -> Outcome {
        let message =
            "not run: the rule has run for this \(what) \(limit) times within a minute, as rules do that trigger "
            + "themselves or each other; when that is fixed, run it with 'alight retry'"
        var outcome = Outcome(.failed, message, code: "loop")
        outcome.isUnbegun = true
        return outcome
    }

    /// Returns the outcome of a job that was interrupted so often by the end of Alight that it may be the cause; nil
    /// otherwise.
    func interruptedTooOften(_ input: Attempt.Input, _ rule: Rule) -> Outcome? {
        guard input.job.isInterrupted, input.job.attempt > rule.retry.attempts + 5 else { return nil }
        let message =
            "\(input.job.attempt - 1) attempts were interrupted because Alight exited, which this job may have caused"
        return Outcome(.failed, message, code: "cut-off")
    }

    // MARK: Fates

    /// The consequence of an outcome for its job.
    enum Fate {
        case ended(JobState)
        case again(Duration, counts: Bool)

        var state: JobState { if case .ended(let state) = self { state } else { .pending } }
        var pause: Duration? { if case .again(let pause, _) = self { pause } else { nil } }
    }

    private func fate(
        of outcome: Outcome, _ job: Job, _ rule: Rule, random: Double
    ) -> Fate {
        switch outcome.ending {
        case .succeeded: return .ended(.succeeded)
        case .skipped: return .ended(.skipped)
        case .failed, .retry:
            if job.failure != nil { return .ended(.failed) }
            if rule.retry.isFinal(outcome, attempt: job.attempt) { return .ended(.failed) }
            if outcome.isInterrupted { return .again(.zero, counts: false) }
            return .again(outcome.retryAfter ?? rule.retry.pause(after: job.attempt, random: random), counts: true)
        case .notReady:
            let age = host.clock.time().since(job.event.time)
            let quiet = rule.settle.quiet(isPolled: false)
            return .again(outcome.retryAfter ?? rule.retry.pause(whileNotReady: quiet, age: age), counts: false)
        }
    }

    // MARK: Metrics and the circuit breaker

    private func recordEnd(of result: Attempt.Result, at now: ContinuousClock.Instant) {
        let outputs = result.parts.flatMap { part in
            if case .outcome(let outcome) = part.termination { outcome.outputs } else { [PathBytes]() }
        }
        let first = result.parts.filter {
            $0.hasStarted && $0.job.attempt == 1 && $0.job.failure == nil
                && (!$0.job.isInterrupted || $0.job.due != nil)
        }
        // A failed job that a user has retried has been waiting since then.
        let waits = first.map { part in
            part.job.due.map { now - result.duration - $0 } ?? result.started.since(part.job.event.time)
        }
        let hasStarted = result.parts.contains(where: \.hasStarted)
        monitor.noteEnded(
            result.parts[0].job.id, outputs: outputs, at: result.started.advanced(by: result.duration),
            ran: hasStarted ? result.duration : nil, waited: waits, now: now)
    }

    /// Doubles the number of brief jobs of the next attempt, or resets it after a failure.
    private mutating func recordBrief(_ result: Attempt.Result, _ index: Int) {
        guard result.rule.runsTogether else { return }
        let hasSucceeded = result.parts.allSatisfy(\.hasSucceeded)
        let count = max(2, 2 * result.parts.count, rules[index].briefCount)
        rules[index].briefCount = hasSucceeded ? min(Self.mostBrief, count) : 1
    }

    private mutating func recordSigns(of result: Attempt.Result, _ index: Int, at now: ContinuousClock.Instant) {
        let groups = result.rule.isCollected ? [result.parts[...]] : result.parts.indices.map { result.parts[$0...$0] }
        for parts in groups {
            let (sign, message) = Self.sign(of: parts)
            guard !engine.options.isOnce, sign != .nothing || rules[index].breaker != nil, let first = parts.first
            else { continue }
            var breaker = rules[index].breaker ?? CircuitBreaker()
            let change = breaker.note(sign, of: first.job.event.path, random: host.random(), at: now)
            rules[index].breaker = sign == .works ? nil : breaker
            let name = rules[index].rule.name
            switch change {
            case .opened(let failures, let cannotStart):
                report(.slowed(rule: name, failures: failures, cannotStart: cannotStart, message: message))
            case .closed: report(.recovered(rule: name))
            case nil: break
            }
        }
    }

    /// Returns the significance of an attempt for the rule's action, and the message of a failure.
    ///
    /// One success in a batch is enough, since the shared cause then works.
    private static func sign(of parts: ArraySlice<Attempt.Part>) -> (CircuitBreaker.Sign, String) {
        var sign = CircuitBreaker.Sign.nothing
        var message = ""
        for part in parts where part.hasStarted {
            guard case .outcome(let outcome) = part.termination, !outcome.isInterrupted else { continue }
            switch outcome.ending {
            case .succeeded, .skipped: return (.works, "")
            case .notReady: break
            case .retry, .failed:
                if outcome.isAboutFile { continue }
                if outcome.code == Outcome.cannotStartCode {
                    sign = .cannotStart
                } else if sign != .cannotStart {
                    sign = part.job.attempt == 1 || sign == .fails ? .fails : .failsAgain
                }
                message = outcome.message
            }
        }
        return (sign, message)
    }

    // MARK: Rules that no longer run

    /// Records the result of an attempt whose rule no longer runs, or was removed in the meantime and added again.
    ///
    /// Its files are no longer watched, so the received state is certain only if they are as offered.
    private mutating func endRetired(_ result: Attempt.Result, _ id: RuleID) {
        let files = WatchedPaths(roots: result.parts.map(\.job.event.root), in: host.fileSystem)
        if index(of: id) != nil { returned.insert(id) }
        for part in result.parts {
            guard case .outcome(let outcome) = part.termination else {
                pauseRetired(part, Outcome(.retry, "its rule was removed before it started"), counts: false)
                continue
            }
            let fate = fate(of: outcome, part.job, result.rule, random: 0)
            let record = record(of: part, outcome, result.started, result.duration)
            if let job = part.job.givenUp(record, result.rule) {
                storeRetired(job, part.input, isInterrupted: false)
                continue
            }
            report(
                .attempt(
                    AttemptReport(
                        part.job, result.rule, attempt: part.job.attempt, outcome, duration: record.duration,
                        fate.state, pause: nil, at: host.clock.time())))
            changes.attempts.append((part.job.id, record))
            switch fate {
            case .again(_, let counts): pauseRetired(part, outcome, counts: counts)
            case .ended(let state):
                end(StoredJob(part.job, state, nil, number: part.input.number), outcome)
                if !part.input.isFrozen { setHandled(part.job.event, of: id, files) }
            }
        }
    }

    /// Stores a job for the next run of its rule.
    private mutating func pauseRetired(_ part: Attempt.Part, _ outcome: Outcome, counts: Bool) {
        var job = part.job
        job.putBack(outcome, counts: counts)
        storeRetired(job, part.input, isInterrupted: outcome.isInterrupted || part.input.isInterrupted)
    }

    private mutating func storeRetired(_ job: Job, _ input: Attempt.Input, isInterrupted: Bool) {
        var offer = Offer(number: input.number, event: job.event)
        offer.isInterrupted = isInterrupted
        let stored = StoredJob(job, .pending, input.isFrozen ? nil : offer, number: input.number)
        changes.jobs[job.id] = JobChange(.unfinished(stored), isNew: newJobs.contains(job.id))
    }

    private mutating func setHandled(_ event: FileEvent, of id: RuleID, _ files: WatchedPaths) {
        let isDeleted = event.kind == .deleted
        let isAsOffered =
            switch files.look(at: event.path) {
            case .absent: isDeleted
            case .present(let now): now.identity == event.snapshot.identity && now.changed == event.snapshot.changed
            case .unreadable: false
            }
        let row = LedgerRow(isDeleted ? nil : event.snapshot, isAsOffered ? .certain : .uncertain)
        changes.rows[id, default: [:]][event.path] = row
        if let from = event.from { changes.rows[id, default: [:]][from] = LedgerRow() }
    }
}

extension Job {
    /// Records an attempt that is followed by another one.
    fileprivate mutating func putBack(_ outcome: Outcome, counts: Bool) {
        previous = PreviousAttempt(attempt, outcome)
        previous?.isUnbegun = outcome.isUnbegun
        if !counts { attempt -= 1 }
    }
}

extension PreviousAttempt {
    /// Creates the record of an attempt from its number and its outcome.
    init(_ attempt: Int, _ outcome: Outcome) {
        self.init(attempt: attempt, outcome: outcome.ending.rawValue, message: outcome.message)
    }
}

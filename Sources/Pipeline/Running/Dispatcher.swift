import ActionAPI
package import FileEvents
package import Gates
package import Jobs
import Monitoring
import PluginProtocol
package import Reconciling
package import Records
package import Rules
import Settling
package import System

/// The last stage: leases due jobs, runs their actions on threads of a pool, and records their outcomes.
///
/// It belongs to the engine's thread; only the actions run elsewhere.
package struct Dispatcher: ~Copyable {
    package let engine: EngineContext
    package let conditions: Conditions
    package var jobs: JobRegistry
    package var lanes: Lanes
    package var uses = FileUses()
    package var pauses = Pauses()
    /// The rule and the jobs of each running attempt, by its first job, and the signal that stops it for a newer
    /// event.
    private var running: [JobID: (rule: RuleID, inputs: [OpenJob], stop: StopSignal?)] = [:]
    /// The rules that were added again while an old attempt ran that is now finished.
    ///
    /// Nothing starts until their jobs are restored.
    package var returned: Set<RuleID> = []
    package var prepared: PreparedAttempts
    /// The jobs whose `on_failure` has not started.
    package var givenUp: [GivenUpJobs] = []
    var sets: FileSets

    package init(_ engine: EngineContext, _ reconciler: Reconciler, _ conditions: Conditions) {
        let options = engine.options
        // Before `self`: Swift 6.3.1 destroys a stored existential that is assigned after others were read.
        let lanes = Lanes(limit: options.jobs, extra: options.extraJobs, rules: engine.ruleset.rules)
        let prepared = PreparedAttempts(engine, limit: lanes.limit)
        self.engine = engine
        self.conditions = conditions
        self.lanes = lanes
        self.prepared = prepared
        sets = FileSets(timeout: options.timeout)
        jobs = JobRegistry(
            engine.ruleset, reconciler, engine.store, engine.chains, on: engine.host, report: engine.report)
    }

    /// Sets other rules; running jobs finish under the rule with which they started.
    package mutating func change(to ruleset: Ruleset) {
        lanes.rename(jobs.rules.change(to: ruleset, at: engine.host.clock.time()))
        lanes.change(to: ruleset.rules)
    }

    /// The number of attempts whose actions have started.
    package var runningCount: Int { lanes.count - prepared.count }

    /// Returns the running job with the id, even if its rule was removed since; nil if no attempt at it runs.
    package func runningInput(_ id: JobID) -> (rule: RuleID, input: OpenJob)? {
        for attempt in running.values {
            if let input = attempt.inputs.first(where: { $0.job.id == id }) { return (attempt.rule, input) }
        }
        return nil
    }

    /// Returns the unfinished job with the id.
    package func find(_ id: JobID) -> (state: RuleState, number: UInt64)? {
        guard let (rule, input) = runningInput(id) else { return jobs.rules.find(id) }
        return jobs.rules[rule].map { ($0, input.job.number) }
    }

    /// Returns the earliest time after the last turn at which ``fill(_:at:isGathering:)`` may have new work.
    package func nextDeadline(after last: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        let times = jobs.rules.active.flatMap { state in
            state.ruleGates.deadlines + [state.jobs.nextDue]
        }
        return (times + [lanes.deadline, prepared.nextLimit]).compactMap(\.self).filter { $0 > last }.min()
    }

    /// Returns the number of jobs that run, or would start if a slot were free.
    package func dueJobs() -> Int {
        guard !pauses.all else { return running.count }
        let waiting = jobs.rules.active.reduce(0) { sum, state in
            guard !pauses.hold(state.rule.name), state.ruleGates.window?.opens == nil else { return sum }
            return sum + state.view.readyCount + state.jobs.due.count
        }
        return waiting + runningCount
    }

    // MARK: Starting

    /// Leases as many due jobs as there are slots; the rules take turns.
    ///
    /// Their actions start once the leases are committed.
    ///
    /// - Parameters:
    ///   - now: The current time; all hints have been received.
    ///   - isGathering: Whether the jobs of a batch wait for further ones.
    package mutating func fill(at now: ContinuousClock.Instant, isGathering: Bool) {
        let time = gateTime(at: now)
        sets.forgetListings()
        lanes.startFilling()
        startGivenUp(at: now)
        var names: [String: RuleState] = [:]
        for state in jobs.rules.active where hasWork(state) {
            checkWindow(of: state, at: time)
            names[state.rule.name] = state
        }
        for name in lanes.fairTurn(Set(names.keys)) {
            if let state = names[name], start(state, at: time, isGathering) { break }
        }
        repeat {
            for level in lanes.levels(Set(names.keys)) {
                var isProgress: Bool
                repeat {
                    isProgress = false
                    for name in lanes.round(level, at: now) {
                        guard let state = names[name] else { continue }
                        if start(state, at: time, isGathering) {
                            isProgress = true
                        } else if !hasWork(state) {
                            names[name] = nil
                        }
                    }
                    // Extra slots are used in the first round.
                } while isProgress && (!lanes.isFull || prepared.canGrow)
            }
        } while lanes.endFilling()
    }

    /// Returns the clocks and the files by which gates decide.
    package func gateTime(at now: ContinuousClock.Instant) -> GateTime {
        let files = jobs.reconciler.openedFiles
        return GateTime(now: now, time: engine.host.clock.time(), clock: engine.options.clock, files: files)
    }

    /// Whether any job could be leased.
    package func hasWork() -> Bool {
        !givenUp.isEmpty || jobs.rules.active.contains { hasWork($0) }
    }

    private func hasWork(_ state: RuleState) -> Bool {
        state.view.hasDue || !state.jobs.due.isEmpty
    }

    /// Leases jobs for one attempt of a rule.
    ///
    /// - Returns: False if nothing more can start for the rule in this turn.
    private mutating func start(_ state: RuleState, at time: GateTime, _ isGathering: Bool) -> Bool {
        let rule = state.rule
        let count = lanes.count(of: rule.name)
        guard !pauses.hold(rule.name), !returned.contains(state.id), hasWork(state),
            state.ruleGates.breaker?.canStart(running: count, at: time.now) ?? true
        else { return false }
        let isClosed = state.ruleGates.window?.opens != nil
        if isClosed, !state.jobs.due.contains(where: { state.jobs[$0]?.event.origin == .manual }) { return false }
        if isGathering, state.ruleGates.batch?.mayLease(at: time.now) == false { return false }
        let hasSlot = lanes.capacity(for: rule, at: time.now) > 0
        if !hasSlot, count == 0 {
            lanes.wait(rule.name, at: time.now)
            putBack(at: time.now) { $0.priority < rule.priority }
        }
        guard hasSlot || prepared.canGrow(rule.name) else { return false }
        let inputs: [OpenJob]
        if isClosed {
            inputs = nextStored(state, state.nextSize, isManual: true, at: time)
        } else if let group = rule.group {
            inputs = nextSet(state, group, at: time)
        } else {
            inputs = nextInputs(state, state.nextSize, at: time)
            closeBatch(state)
        }
        guard !inputs.isEmpty else { return false }
        prepare(inputs, state, hasSlot: hasSlot, at: time.now)
        return true
    }

    /// Checks whether the window of a rule with jobs is open; a closed one is reported once.
    private func checkWindow(of state: RuleState, at time: GateTime) {
        state.ruleGates.checkWindow(at: time)
        guard let opens = state.ruleGates.window?.opens, state.reportedOpening != opens else { return }
        state.reportedOpening = opens
        engine.report(.closed(rule: state.rule.name, opens: opens.local(engine.options.clock)))
    }

    /// Closes the batch of a rule if nothing of it is left to lease, so that the next event starts another one.
    package func closeBatch(_ state: RuleState) {
        if !hasWork(state) { state.ruleGates.batch?.close() }
    }

    /// Prepares an attempt, in a slot of its own or after another one of the rule.
    private mutating func prepare(
        _ inputs: [OpenJob], _ state: RuleState, hasSlot: Bool = true, at now: ContinuousClock.Instant
    ) {
        let rule = state.rule
        let jobs = inputs.map(\.job)
        if hasSlot { lanes.start(jobs, at: now) }
        uses.add(jobs.flatMap(\.event.paths), isShared: rule.sharesFile)
        if jobs[0].failure == nil { state.ruleGates.breaker?.start(jobs[0].event.path) }
        let isRestarted = rule.whileBusy == .restart && jobs[0].failure == nil
        let stop = isRestarted ? StopSignal(under: engine.stopSignal) : engine.stopSignal
        running[jobs[0].id] = (state.id, inputs, isRestarted ? stop : nil)
        if hasSlot {
            prepared.add(inputs, state.shared, stop, room: jobs[0].failure == nil ? state.nextLength - 1 : 0)
        } else {
            prepared.append(inputs, state.shared, stop)
        }
    }

    /// Puts back the jobs that wait in a series for others, in those of some rules.
    package mutating func putBack(at now: ContinuousClock.Instant, of isHeld: (Rule) -> Bool = { _ in true }) {
        putBack(prepared.takeWaiting(of: isHeld), at: now)
    }

    /// Puts back those of paused rules.
    package mutating func putBackPaused(at now: ContinuousClock.Instant) {
        let pauses = pauses
        putBack(at: now) { pauses.hold($0.name) }
    }

    /// Puts back those that wait in a series with one whose file has been hinted since its lease.
    package mutating func putBackSettling(at now: ContinuousClock.Instant) {
        let waiting = prepared.takeWaiting(at: jobs.reconciler.isSettling)
        putBack(waiting, at: now)
    }

    private mutating func putBack(_ attempts: [Attempt], at now: ContinuousClock.Instant) {
        for job in attempts.lazy.flatMap(\.inputs).map(\.job) {
            uses.remove(job.event.paths)
            engine.monitor.recordPutBack(job.id)
            guard let id = running.removeValue(forKey: job.id)?.rule, let state = jobs.rules[id] else { continue }
            jobs.putBack(job.number, state, at: now)
            wake(job.event.paths)
        }
    }

    /// Stops the attempt at an offer whose file has changed.
    package func stop(_ view: Int, _ number: UInt64) {
        guard let job = jobs.rules[view].jobs[number] else { return }
        running[job.id]?.stop?.raise()
    }

    // MARK: on_failure

    /// Whether `on_failure` could start for a job if a slot were free.
    package var hasGivenUp: Bool {
        givenUp.contains { jobs.rules[$0.rule].map { !pauses.hold($0.rule.name) } ?? false }
    }

    /// Starts `on_failure` for the jobs for which there are slots, and whose files are not in use.
    private mutating func startGivenUp(at now: ContinuousClock.Instant) {
        let waiting = givenUp
        givenUp = []
        for group in waiting {
            // The jobs of a removed rule are stored.
            guard let state = jobs.rules[group.rule] else { continue }
            let inputs = group.numbers.compactMap { state.givenUpInput($0, state.view.offer($0)) }
            guard !inputs.isEmpty else { continue }
            let rule = state.rule
            let isFree = inputs.flatMap(\.job.event.paths).allSatisfy { uses.allows($0, rule.sharesFile) }
            if isFree, !pauses.hold(rule.name), lanes.capacity(for: rule, at: now) > 0 {
                prepare(inputs, state, at: now)
            } else {
                givenUp.append(group)
            }
        }
    }

    // MARK: Results

    /// Records the steps of a running job that have succeeded.
    ///
    /// - Parameters:
    ///   - steps: All finished steps.
    ///   - outputs: The paths that the last step has written.
    ///   - id: The job.
    package mutating func record(_ steps: [FinishedStep], writing outputs: Set<PathBytes>, of id: JobID) {
        guard let (state, number) = find(id) else { return }
        for output in outputs.sorted() { state.view.recordOwnWrite(output, of: number) }
        jobs.record(steps, number, state)
    }

    /// Blocks a path that the running step of a job is about to write.
    package func declare(_ path: PathBytes, of id: JobID) {
        guard let (state, number) = find(id) else { return }
        state.view.declareOutput(number, path)
    }

    /// A series that takes longer than expected: its results so far, and the attempts that will not start in it.
    package struct OverdueSeries {
        fileprivate let rule: String
        fileprivate let waiting: [Attempt]
        fileprivate let results: [AttemptResult]
    }

    /// Removes and returns the series that take longer than expected.
    package mutating func takeOverdue(at now: ContinuousClock.Instant) -> [OverdueSeries] {
        prepared.takeOverdue(at: now).map { series in
            let waiting = series.takeWaiting()
            if let (attempt, since) = series.current {
                engine.monitor.recordStarted([EngineStatus.RunningAttempt([attempt], since: since)])
            }
            return OverdueSeries(rule: series.rule.name, waiting: waiting, results: series.takeResults())
        }
    }

    /// Records what an overdue series has done.
    ///
    /// All hints that were queued when it was taken must be received before.
    package mutating func record(_ series: OverdueSeries, at now: ContinuousClock.Instant) {
        for result in series.results { record(result, at: now) }
        putBack(series.waiting, at: now)
        jobs.rules[series.rule]?.resetBrief()
    }

    /// Records the end of a series.
    ///
    /// All hints that were queued when it was reported must be received before.
    package mutating func recordEnd(of series: AttemptSeries, at now: ContinuousClock.Instant) {
        lanes.end(series.id, at: now)
        prepared.end(series.id)
        let results = series.takeResults()
        for result in results { record(result, at: now) }
        putBack(series.takeWaiting(), at: now)
        jobs.rules[series.rule.name]?.recordBrief(results)
    }

    private mutating func record(_ result: AttemptResult, at now: ContinuousClock.Instant) {
        precondition(!result.parts.isEmpty, "an attempt at no job")
        let paths = result.parts.flatMap(\.job.event.paths)
        uses.remove(paths)
        let attempt = running.removeValue(forKey: result.parts[0].job.id)
        recordEnd(of: result, at: now)
        guard let id = attempt?.rule, let state = jobs.rules[id], state.jobs[result.parts[0].job.number] != nil else {
            if let id = attempt?.rule {
                if jobs.rules[id] != nil { returned.insert(id) }
                jobs.recordRetired(result, id)
            }
            wake(paths)
            return
        }
        sets.takeBackCount(of: result, state)
        let isCollected = result.rule.value.isCollected
        let wasRestarted = attempt?.stop?.isRaised ?? false
        let reports = jobs.record(result, state, wasRestarted: wasRestarted, at: now)
        wake(paths)
        givenUp += state.givenUp(result.parts.map(\.job.number))
        if reports.count > 1, isCollected {
            engine.report(.batch(reports))
        } else {
            for report in reports { engine.report(.attempt(report)) }
        }
        guard result.parts[0].job.failure == nil else { return }
        recordSigns(of: result, state, at: now)
    }

    /// Wakes the jobs that wait for paths on which an action has worked.
    private func wake(_ paths: [PathBytes]) {
        for path in paths { jobs.reconciler.wake(Self.busy(path)) }
    }

    private func recordEnd(of result: AttemptResult, at now: ContinuousClock.Instant) {
        let outputs = result.parts.flatMap { part in
            if case .outcome(let outcome) = part.termination { outcome.outputs } else { [PathBytes]() }
        }
        // A failed job that a user has retried has been waiting since then.
        let waits = result.parts.compactMap { part -> Duration? in
            guard part.hasStarted, part.job.attempt == 1, part.job.failure == nil,
                !part.job.isInterrupted || part.job.due != nil
            else { return nil }
            return part.job.due.map { now - result.duration - $0 } ?? result.started.since(part.job.event.time)
        }
        let hasStarted = result.parts.contains(where: \.hasStarted)
        engine.monitor.recordEnded(
            result.parts[0].job.id, outputs: outputs, at: result.started.advanced(by: result.duration),
            ran: hasStarted ? result.duration : nil, waited: waits, now: now)
    }

    /// Records in the circuit breaker whether the rule's action works.
    private func recordSigns(of result: AttemptResult, _ state: RuleState, at now: ContinuousClock.Instant) {
        guard !engine.options.isOnce else { return }
        let groups =
            result.rule.value.isCollected ? [result.parts[...]] : result.parts.indices.map { result.parts[$0...$0] }
        for parts in groups {
            let (sign, message) = CircuitBreaker.sign(of: parts)
            guard sign != .nothing || state.ruleGates.breaker != nil, let first = parts.first else { continue }
            var breaker = state.ruleGates.breaker ?? CircuitBreaker()
            let change = breaker.record(sign, of: first.job.event.path, random: engine.host.random(), at: now)
            state.ruleGates.breaker = sign == .works ? nil : breaker
            let name = state.rule.name
            switch change {
            case .opened(let failures, let cannotStart):
                engine.report(.slowed(rule: name, failures: failures, cannotStart: cannotStart, message: message))
            case .closed: engine.report(.recovered(rule: name))
            case nil: break
            }
        }
    }
}

extension CircuitBreaker {
    /// Returns the significance of an attempt for the rule's action, and the message of a failure.
    ///
    /// One success in a batch is enough, since the shared cause then works.
    package static func sign(of parts: ArraySlice<AttemptPart>) -> (Sign, message: String) {
        var sign = Sign.nothing
        var message = ""
        for part in parts where part.hasStarted {
            guard case .outcome(let outcome) = part.termination, !outcome.isInterrupted else { continue }
            switch outcome.result {
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
}

import ActionAPI
import FileEvents
import Glibc
import Logging
import PluginProtocol
import Reconciling
import Rules
import Settling
import Storage
import System

/// The last stage: leases due jobs, runs their actions on threads of a pool, and records their outcomes.
///
/// It belongs to the engine's thread; only the actions run elsewhere.
struct Dispatcher: ~Copyable {
    var ruleset: Ruleset
    /// The rules in the order of the ruleset, which is that of the reconciler's views.
    var rules: [RuleState]
    private var indexes: [RuleID: Int] = [:]
    /// The rules that may have jobs in their frozen queues.
    private var frozenRules: Set<Int> = []
    let engine: Engine
    private let executor: any AttemptExecutor

    var store: DiskStore { engine.store }
    var host: Host { engine.host }
    var clock: LocalClock { engine.options.clock }
    var monitor: Monitor { engine.monitor }
    var report: (EngineReport) -> Void { engine.report }
    private var mailbox: Mailbox<Attempt.Result> { engine.mailbox }

    var lanes: Lanes
    var uses = FileUses()
    var pauses = Pauses()
    /// The rule and the jobs of each running attempt, by its first job, and the signal that stops it for a newer
    /// event.
    var running: [JobID: (rule: RuleID, inputs: [Attempt.Input], stop: StopSignal?)] = [:]
    /// The rules that were added again while an old attempt ran that is now finished.
    ///
    /// Nothing starts until their jobs are restored.
    var returned: Set<RuleID> = []
    /// The attempts whose leases are not committed yet.
    private var prepared: [Attempt] = []
    /// The permission of the prepared attempts.
    private var permission = StartPermission()
    /// Whether they have been submitted.
    private var isSubmitted = false
    /// The changes of jobs that are not committed yet.
    var changes = TurnChanges()
    /// The jobs that have no row yet.
    var newJobs: Set<JobID> = []
    var counts = JobCounts()
    /// The number of the last job.
    var number: UInt64
    /// The jobs that were given up and whose `on_failure` has not started.
    var givenUp: [GivenUp] = []
    /// The names under which the loop guard has counted running sets, by the first job of each.
    var countedSets: [JobID: PathBytes] = [:]
    /// The names in directories that were listed in this turn.
    var listings: [PathBytes: [PathBytes]] = [:]

    init(_ engine: Engine, _ rules: [RuleState]) {
        let options = engine.options
        // Before `self`: Swift 6.3.1 destroys a stored existential that is assigned after others were read.
        let lanes = Lanes(limit: options.jobs, extra: options.extraJobs, rules: engine.ruleset.rules)
        let executor = options.executor ?? WorkerPool(limit: options.isDry ? 1 : lanes.limit)
        self.engine = engine
        self.rules = rules
        self.lanes = lanes
        self.executor = executor
        ruleset = engine.ruleset
        number = engine.store.stored.number
        indexes = Self.indexes(of: rules)
    }

    private static func indexes(of rules: [RuleState]) -> [RuleID: Int] {
        Dictionary(uniqueKeysWithValues: rules.enumerated().map { ($1.id, $0) })
    }

    /// Returns the rules that may have jobs or due paths; the others cost nothing.
    func active(_ reconciler: borrowing Reconciler) -> Set<Int> { reconciler.shared.active.union(frozenRules) }

    /// Removes the rules without jobs from those that ``active(_:)`` returns.
    mutating func forgetIdle() { frozenRules = frozenRules.filter { !rules[$0].frozen.entries.isEmpty } }

    /// Appends a job whose event is not compared with the ledger.
    mutating func append(_ entry: FrozenQueue.Entry, _ index: Int) {
        rules[index].frozen.append(entry)
        frozenRules.insert(index)
    }

    /// Sets other rules; running jobs finish under the rule with which they started.
    mutating func change(to ruleset: Ruleset, _ states: [RuleState]) {
        let time = host.clock.time()
        var names: [String: String] = [:]
        rules = states.map { new in
            guard let state = index(of: new.id).map({ rules[$0] }) else { return new }
            names[state.rule.name] = new.rule.name
            state.change(to: new.rule, at: time)
            return state
        }
        indexes = Self.indexes(of: rules)
        lanes.rename(names.filter { $0 != $1 })
        lanes.change(to: ruleset.rules)
        self.ruleset = ruleset
        frozenRules = Set(rules.indices)
    }

    /// The number of attempts whose actions have started.
    var runningCount: Int { lanes.count - prepared.count }

    /// Returns the index of the rule with the id; nil if it does not run.
    func index(of id: RuleID) -> Int? { indexes[id] }

    /// Returns the running job with the id, even if its rule was removed since; nil if no attempt at it runs.
    func runningInput(_ id: JobID) -> (rule: RuleID, input: Attempt.Input)? {
        for attempt in running.values {
            if let input = attempt.inputs.first(where: { $0.job.id == id }) { return (attempt.rule, input) }
        }
        return nil
    }

    /// Returns the unfinished job with the id.
    func find(_ id: JobID) -> (index: Int, number: UInt64, isFrozen: Bool)? {
        if let (rule, input) = runningInput(id) {
            return index(of: rule).map { ($0, input.number, input.isFrozen) }
        }
        for index in rules.indices {
            if let number = rules[index].jobs.first(where: { $0.value.id == id })?.key { return (index, number, false) }
            if let number = rules[index].frozen.entries.first(where: { $0.value.job.id == id })?.key {
                return (index, number, true)
            }
        }
        return nil
    }

    /// Whether a rule has the unfinished job with the number.
    func knows(_ number: UInt64, _ index: Int) -> Bool {
        rules[index].jobs[number] != nil || rules[index].frozen[number] != nil
    }

    func gateTime(_ files: WatchedPaths, at now: ContinuousClock.Instant) -> GateTime {
        GateTime(now: now, time: host.clock.time(), clock: clock, files: files)
    }

    /// Returns the earliest time after the last turn at which ``fill(_:at:isGathering:)`` may have new work.
    func nextDeadline(
        after last: ContinuousClock.Instant, _ reconciler: borrowing Reconciler
    ) -> ContinuousClock.Instant? {
        let times = active(reconciler).flatMap { index in
            [rules[index].batch?.deadline, rules[index].breaker?.rests, rules[index].frozen.nextDue]
        }
        return (times + [lanes.deadline]).compactMap(\.self).filter { $0 > last }.min()
    }

    // MARK: Leasing

    /// Leases as many due jobs as there are slots; the rules take turns.
    ///
    /// Their actions start with ``launch()``, once the leases are committed.
    ///
    /// - Parameters:
    ///   - reconciler: The reconciler, which has received all hints.
    ///   - now: The current time.
    ///   - isGathering: Whether the jobs of a batch wait for further ones.
    mutating func fill(_ reconciler: inout Reconciler, at now: ContinuousClock.Instant, isGathering: Bool) {
        let time = gateTime(reconciler.openedFiles, at: now)
        listings = [:]
        lanes.beginFilling()
        startGivenUp(at: now)
        var names: [String: Int] = [:]
        for index in active(reconciler) where hasWork(index, reconciler) { names[rules[index].rule.name] = index }
        for name in lanes.owed(Set(names.keys)) {
            if let index = names[name], start(index, &reconciler, at: time, isGathering) { break }
        }
        repeat {
            for level in lanes.levels(Set(names.keys)) {
                var isProgress: Bool
                repeat {
                    isProgress = false
                    for name in lanes.round(level, at: now) {
                        guard let index = names[name] else { continue }
                        if start(index, &reconciler, at: time, isGathering) {
                            isProgress = true
                        } else if !hasWork(index, reconciler) {
                            names[name] = nil
                        }
                    }
                    // Extra slots are used in the first round.
                } while isProgress && !lanes.isFull
            }
        } while lanes.endFilling()
    }

    /// Whether any job could be leased.
    func hasWork(_ reconciler: borrowing Reconciler) -> Bool {
        !givenUp.isEmpty || active(reconciler).contains { hasWork($0, reconciler) }
    }

    private func hasWork(_ index: Int, _ reconciler: borrowing Reconciler) -> Bool {
        reconciler.views[index].hasDue || !rules[index].frozen.due.isEmpty
    }

    /// Leases jobs for one attempt of a rule.
    ///
    /// - Returns: False if nothing more can start for the rule in this turn.
    private mutating func start(
        _ index: Int, _ reconciler: inout Reconciler, at time: GateTime, _ isGathering: Bool
    ) -> Bool {
        let rule = rules[index].rule
        let count = lanes.count(of: rule.name)
        guard !pauses.hold(rule.name), !returned.contains(rules[index].id), count < rule.concurrency,
            hasWork(index, reconciler),
            rules[index].breaker?.mayBegin(running: count, at: time.now) ?? true
        else { return false }
        if isGathering, rules[index].batch?.mayLease(at: time.now) == false { return false }
        guard lanes.room(for: rule, at: time.now) > 0 else {
            if count == 0 { lanes.wait(rule.name, at: time.now) }
            return false
        }
        let wanted = size(of: index, at: time.now)
        let inputs: [Attempt.Input]
        if let group = rule.group {
            inputs = nextSet(index, group, &reconciler, at: time)
        } else {
            inputs = nextInputs(index, wanted, &reconciler, at: time)
            closeBatch(index, reconciler)
        }
        guard !inputs.isEmpty else { return false }
        prepare(inputs, index, at: time.now)
        return true
    }

    /// Closes the batch of a rule if nothing of it is left to lease, so that the next event starts another one.
    mutating func closeBatch(_ index: Int, _ reconciler: borrowing Reconciler) {
        if rules[index].batch != nil, !hasWork(index, reconciler) { rules[index].batch?.close() }
    }

    /// The number of jobs of the next attempt of a rule.
    private func size(of index: Int, at now: ContinuousClock.Instant) -> Int {
        let state = rules[index]
        if state.breaker?.isOpen == true { return 1 }
        if let batch = state.rule.batch { return batch.files }
        return state.breaker == nil && state.rule.runsTogether ? state.briefCount : 1
    }

    private mutating func nextInputs(
        _ index: Int, _ count: Int, _ reconciler: inout Reconciler, at time: GateTime
    ) -> [Attempt.Input] {
        var inputs = nextFrozen(index, count, &reconciler, at: time)
        var bytes: UInt64 = 0
        let isBatch = rules[index].rule.batch != nil
        while inputs.count < count, isBatch || bytes < Self.mostBriefBytes,
            let candidate = reconciler.views[index].nextCandidate(at: time.now)
        {
            guard let input = take(candidate, index, &reconciler, at: time) else { continue }
            bytes += input.job.event.snapshot.size
            inputs.append(input)
        }
        return inputs
    }

    /// Leases due frozen jobs, up to a number, unless a due path has to be leased before.
    mutating func nextFrozen(
        _ index: Int, _ count: Int, _ reconciler: inout Reconciler, at time: GateTime
    ) -> [Attempt.Input] {
        var inputs: [Attempt.Input] = []
        for number in rules[index].frozen.due {
            guard inputs.count < count else { break }
            guard let entry = rules[index].frozen[number] else { continue }
            if entry.after > 0, entry.after >= reconciler.views[index].nextDuePosition ?? .max { continue }
            // A raw event that the kernel reported after the file had settled follows the event of the file.
            let event = entry.job.event
            if event.kind.isRaw, reconciler.views[index].isDue(event.path, before: event.time) { continue }
            if let input = takeFrozen(entry, index, &reconciler, at: time) { inputs.append(input) }
        }
        return inputs
    }

    /// The limits of one attempt at brief actions, in jobs and in bytes of their files: one commit then serves
    /// several jobs.
    static let mostBrief = 64
    private static let mostBriefBytes: UInt64 = 1 << 20

    /// Leases a candidate if the gates let it run.
    mutating func take(
        _ candidate: Reconciler.Candidate, _ index: Int, _ reconciler: inout Reconciler, at time: GateTime
    ) -> Attempt.Input? {
        guard isFree(candidate, index, &reconciler, at: time.now) else { return nil }
        let event = candidate.event
        let retried = candidate.retried.flatMap { rules[index].jobs[$0.number] }
        let job = DueJob(
            event: event, hasStartedBefore: candidate.retried != nil && retried?.previous?.isUnbegun != true,
            isInterrupted: candidate.retried.map { $0.isInterrupted || $0.steps > 0 } ?? false)
        if case .wait(let gate, let until, let waiting) = rules[index].gates.verdict(for: job, at: time) {
            hold(candidate, for: gate, until: until, waiting, index, &reconciler)
            return nil
        }
        let isCounted = candidate.retried == nil && !event.kind.isLifecycle && rules[index].rule.group == nil
        if isCounted, isOneTooMany(event.path, of: event.path, index, at: time.now) {
            let outcome = Self.loop("path", rules[index].gates.loop.limit)
            endUnrun(lease(candidate, index, &reconciler), index, outcome, &reconciler, at: time.now)
            return nil
        }
        let input = lease(candidate, index, &reconciler)
        if let outcome = interruptedTooOften(input, rules[index].rule) {
            endUnrun(input, index, outcome, &reconciler, at: time.now)
            return nil
        }
        return input
    }

    /// Counts a run in the loop guard, and reports the path if it exceeds the limit.
    mutating func isOneTooMany(
        _ counted: PathBytes, of path: PathBytes, _ index: Int, at now: ContinuousClock.Instant
    ) -> Bool {
        guard rules[index].gates.loop.count(counted, at: now) else { return false }
        let limit = rules[index].gates.loop.limit
        report(.braked(rule: rules[index].rule.name, path: path, limit: limit, pause: LoopGuard.period))
        return true
    }

    /// Whether no other action excludes one for the candidate; otherwise the candidate waits.
    mutating func isFree(
        _ candidate: Reconciler.Candidate, _ index: Int, _ reconciler: inout Reconciler, at now: ContinuousClock.Instant
    ) -> Bool {
        let rule = rules[index].rule
        let paths = candidate.event.paths
        if let busy = paths.first(where: { !uses.allows($0, rule.sharesFile) }) {
            reconciler.views[candidate.view].hold(candidate, for: Self.busy(busy))
            return false
        }
        guard rule.removesInput, let other = preceding(index, candidate.event.path, reconciler) else {
            return true
        }
        let waiting = Waiting(.precedence, "it waits for rule '\(other)', which has a higher priority")
        hold(
            candidate, for: Self.busy(candidate.event.path), until: now + Self.precedenceRecheck, waiting, index,
            &reconciler)
        return false
    }

    /// Returns a rule of higher priority that has not finished with a file.
    private func preceding(_ index: Int, _ path: PathBytes, _ reconciler: borrowing Reconciler) -> String? {
        let priority = rules[index].rule.priority
        return rules.indices.first { other in
            rules[other].rule.priority > priority
                && (reconciler.views[other].isUnfinished(path) || rules[other].frozen.contains(path))
        }.map { rules[$0].rule.name }
    }

    /// The interval at which it is checked whether a rule of higher priority has finished with a file.
    private static let precedenceRecheck = Duration.seconds(1)

    static func busy(_ path: PathBytes) -> Reconciler.Gate { Reconciler.Gate("busy", path) }

    /// Makes a candidate wait; a closed window is reported once.
    mutating func hold(
        _ candidate: Reconciler.Candidate, for gate: Reconciler.Gate, until time: ContinuousClock.Instant?,
        _ waiting: Waiting?, _ index: Int, _ reconciler: inout Reconciler
    ) {
        reconciler.views[candidate.view].hold(candidate, for: gate, until: time, waiting?.reason)
        guard waiting?.cause == .window, let opens = rules[index].gates.window?.opens,
            rules[index].reportedOpening != opens
        else { return }
        rules[index].reportedOpening = opens
        report(.closed(rule: rules[index].rule.name, opens: opens.local(clock)))
    }

    /// Leases a candidate.
    mutating func lease(
        _ candidate: Reconciler.Candidate, _ index: Int, _ reconciler: inout Reconciler
    ) -> Attempt.Input {
        var candidate = candidate
        if let age = rules[index].gates.age { candidate.event = age.opened(candidate.event) }
        reconciler.shared.number = max(reconciler.shared.number, number)
        let offer = reconciler.views[candidate.view].lease(candidate)
        number = max(number, offer.number)
        let rule = rules[index].rule
        var hasLostInput = false
        var job: Job
        if let known = rules[index].jobs[offer.number] {
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
        if !rule.needsAuthor { job.event.author = .notAsked }
        job.attempt += 1
        job.waiting = nil
        job.isInterrupted = offer.isUncertain || offer.isInterrupted
        reconciler.views[index].update(offer.number) { offer in
            offer.steps = job.steps.count
            offer.mayRemoveInput = rule.mayRemoveInput(job)
        }
        rules[index].jobs[offer.number] = job
        let hasStarted = offer.mayHaveBegun && job.previous?.isUnbegun != true || offer.steps > 0
        return Attempt.Input(
            job: job, number: offer.number, hasStartedBefore: hasStarted,
            isInterrupted: offer.isInterrupted || offer.steps > 0,
            mayBeDone: offer.hasRemovedInput || offer.isInterrupted && offer.mayRemoveInput,
            isCertain: !offer.isUncertain, hasLostInput: hasLostInput)
    }

    /// Whether the gates let a due job of the frozen queue run; otherwise it waits.
    private mutating func opens(
        _ entry: FrozenQueue.Entry, _ index: Int, hasStarted: Bool, at time: GateTime
    ) -> Bool {
        let event = entry.job.event
        let job = DueJob(
            event: event, hasStartedBefore: hasStarted,
            isInterrupted: entry.job.isInterrupted || !entry.job.steps.isEmpty)
        if case .wait(_, let until, let waiting) = rules[index].gates.verdict(for: job, at: time) {
            rules[index].frozen[entry.number]?.due = until ?? time.now + .seconds(60)
            guard waiting != entry.job.waiting else { return false }
            rules[index].frozen[entry.number]?.job.waiting = waiting
            storeFrozen(entry.number, index)
            return false
        }
        guard entry.job.attempt == 0, !event.kind.isLifecycle,
            isOneTooMany(event.path, of: event.path, index, at: time.now)
        else { return true }
        // Skipping a piece of text, or one event of many, would break the order.
        rules[index].frozen[entry.number]?.due = time.now + LoopGuard.period
        return false
    }

    /// Leases a due job of the frozen queue, if the gates let it run.
    mutating func takeFrozen(
        _ entry: FrozenQueue.Entry, _ index: Int, _ reconciler: inout Reconciler, at time: GateTime
    ) -> Attempt.Input? {
        let isShared = rules[index].rule.sharesFile
        let hasStarted = entry.job.attempt > 0 && entry.job.previous?.isUnbegun != true
        guard entry.paths.allSatisfy({ uses.allows($0, isShared) }),
            opens(entry, index, hasStarted: hasStarted, at: time)
        else { return nil }
        var input = Attempt.Input(job: entry.job, number: entry.number, isFrozen: true, hasStartedBefore: hasStarted)
        input.job.attempt += 1
        input.job.waiting = nil
        input.job.rule = rules[index].rule.name
        // A user names a file, not its content at that time.
        let event = entry.job.event
        if event.origin == .manual, case .present(let snapshot) = time.files.look(at: event.path) {
            input.job.event.snapshot = snapshot
        }
        input.hasLostInput = !input.job.keepSteps(of: rules[index].rule)
        rules[index].frozen[entry.number]?.job = input.job
        rules[index].frozen[entry.number]?.isRunning = true
        reconciler.views[index].beginFrozen(entry.job.event)
        storeFrozen(entry.number, index)
        if let outcome = interruptedTooOften(input, rules[index].rule) {
            endFrozen(input, index, .failed, outcome, &reconciler, at: time.now)
            reportUnrun(input.job, index, outcome, .failed)
            return nil
        }
        return input
    }

    // MARK: Starting

    mutating func prepare(_ inputs: [Attempt.Input], _ index: Int, at now: ContinuousClock.Instant) {
        let rule = rules[index].rule
        let jobs = inputs.map(\.job)
        lanes.start(jobs, at: now)
        uses.add(jobs.flatMap(\.event.paths), isShared: rule.sharesFile)
        if jobs[0].failure == nil { rules[index].breaker?.begin(jobs[0].event.path) }
        let isRestarted = rule.whileBusy == .restart && jobs[0].failure == nil
        let stop = isRestarted ? StopSignal(under: engine.stopSignal) : engine.stopSignal
        running[jobs[0].id] = (rules[index].id, inputs, isRestarted ? stop : nil)
        var attempt = Attempt(
            inputs: inputs, rule: rule, perform: engine.perform, stop: stop, log: engine.log, host: host,
            permission: permission)
        attempt.progress = { [mailbox] in mailbox.post(.advanced($0, $1, $2)) }
        attempt.declared = { [mailbox] in mailbox.post(.declared($0, $1)) }
        prepared.append(attempt)
    }

    /// Starts the prepared attempts; their actions wait for ``launch()``.
    mutating func submit() {
        guard !prepared.isEmpty, !isSubmitted else { return }
        isSubmitted = true
        let isQuick = mailbox.gather(begun: prepared.count, running: lanes.count)
        executor.submit(
            prepared.map { attempt in { [mailbox] in mailbox.post(.ended(attempt.run())) } }, isQuick: isQuick)
    }

    /// Lets the actions of the submitted attempts start.
    mutating func launch() {
        guard !prepared.isEmpty else { return }
        permission.grant()
        let time = host.clock.time()
        monitor.noteBegun(
            prepared.map { attempt in
                let job = attempt.inputs[0].job
                return EngineStatus.RunningAttempt(
                    job: job.id, jobs: attempt.inputs.count, rule: attempt.rule.name,
                    action: attempt.rule.actionNames(of: job),
                    path: job.event.path, since: time, takesSlot: attempt.rule.takesSlot)
            })
        let accepted = prepared.flatMap(\.inputs).filter { $0.job.attempt == 1 && $0.job.previous == nil }.map(\.job)
        if !accepted.isEmpty { report(.accepted(accepted)) }
        let isFirst = lanes.count == prepared.count
        endPreparing()
        // The kernel prefers to wake threads on the waking processor; the rest of this turn can wait.
        if isFirst { sched_yield() }
    }

    /// Prevents the actions of the submitted attempts from starting, because the run is over.
    mutating func refuse() {
        permission.refuse()
        endPreparing()
    }

    private mutating func endPreparing() {
        prepared = []
        permission = StartPermission()
        isSubmitted = false
    }

    /// Stops the attempts at offers whose files have changed.
    func stop(_ overtaken: [(view: Int, number: UInt64)]) {
        for (index, number) in overtaken {
            guard let job = rules[index].jobs[number] else { continue }
            running[job.id]?.stop?.raise()
        }
    }

    /// Starts the work that waits for a thread of the pool.
    func wakeRest() { executor.wakeRest() }
}

extension Rule {
    /// Whether one attempt may run several of its jobs without a visible difference.
    ///
    /// This requires that each has its own outcome, and that none delays the others.
    var runsTogether: Bool {
        !takesSlot && whileBusy == .coalesce && ready == nil && group == nil && sameContent != .ignore
            // A failure with a shared cause must not use up the only attempt of each job.
            && retry.attempts > 1 && actions.count == 1
    }

    /// Returns the list that an attempt at the job runs: `on_failure` once it was given up.
    func actions(of job: Job) -> [Action] { job.failure == nil ? actions : onFailure }

    /// Whether the next step of a job may remove the file; a rule that receives deletions is informed by the event.
    func mayRemoveInput(_ job: Job) -> Bool {
        actions(of: job).dropFirst(job.finishedSteps.count).first.map(mayRemoveInput) ?? false
    }

    func mayRemoveInput(_ action: Action) -> Bool {
        action.traits.contains(.removesInput) || action.isProgram && !events.contains(.deleted)
    }

    /// Whether its actions only read the file, and therefore share it with others that do.
    var sharesFile: Bool { (actions + onFailure).allSatisfy { $0.traits.contains(.sharesFile) } }

    /// Whether an action moves or deletes the file.
    var removesInput: Bool { actions.contains { $0.traits.contains(.removesInput) } }

    /// Whether its jobs are passed to its actions together.
    var isCollected: Bool { batch != nil || group != nil }
}

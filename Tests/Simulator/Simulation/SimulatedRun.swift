import ActionAPI
import Engine
import FileEvents
import Gates
import Logging
import Monitoring
import PluginProtocol
import Records
import Rules
import Storage
import Synchronization
package import System
import Watching

/// A run of the core in a simulated world: its files, its time, its kills and the actions of its rules.
///
/// The real engine, reconciler, dispatcher and journal run turn by turn on the thread of the owner; the watcher and the
/// disk are simulated. Actions run on coroutines, so that any change of files can happen between any two of their
/// steps. The same steps give the same run. ``World`` is compared with real files, and the hints of
/// ``SimulatedWatcher`` with those of the real `Watcher`, by `WorldTests`.
///
/// Three kinds of checks:
///
/// - after each step, ``invariantFailure()``: the ledger of a plain rule is the sum of the events of its ended jobs, and
///   something waits for each file that differs from it; and ``StartRows``: no two actions run for one path;
/// - at each start of an action, ``RunRecord``: no file is handled twice without `interrupted` or a higher `attempt`, or
///   is due while it is open for writing; no action starts outside its `window`, for an event that the rule does not
///   list, for a file that `where` rejects, or for one that an earlier rule with `stop` matches;
/// - when everything is idle, ``verdict()``: the state that each action knows from its events equals the files, and so
///   does the ledger, with nothing uncertain; each byte of a file with `tail` was reported once and in order.
///
/// The watcher itself and the handlers are not simulated, and therefore neither are watch limits, the content types of
/// `where`, `same_content`, `by`, `undo`, and a journal that cannot be written.
// The state is used by the owner's thread, and by a coroutine only while the owner waits for it. A semaphore hands it
// over between any two accesses.
package final class SimulatedRun: @unchecked Sendable {
    package let world: World
    package private(set) var rules: [SimulatedRule]
    private(set) var loaded: [Rule]
    private let host: Host
    private var store: DiskStore
    private(set) var program: SimulatedProgram?
    var watcher: SimulatedWatcher?
    /// Whether the watcher has worked since the last turn.
    private(set) var hasUnreadHints = false
    /// The started and unfinished attempts, in order.
    var activities: [Activity] = []
    private var active: Activity?
    /// Whether all actions without an explicit result fail.
    private var fails = false
    var record: RunRecord
    private var startRows = StartRows()
    /// The number of changes between two inspections by the program before the current turn.
    private(set) var racesBefore = 0
    private(set) var changedByName = ChangedNames()
    /// Receives a line for each event of the run, for debugging.
    package var trace: (@Sendable (String) -> Void)?

    package init(
        _ rules: [SimulatedRule], seed: UInt64 = 0, delays: Bool = false, hasBirth: Bool = true,
        foldsCase: Bool = false, isFaulty: Bool = false
    ) {
        let world = World(seed: seed, delays: delays)
        self.world = world
        self.rules = rules
        loaded = rules.map { $0.rule(in: world.base) }
        record = RunRecord(rules: rules.count, hasBirth: hasBirth)
        host = world.host
        do {
            store = try DiskStore(inMemory: nil, now: world.time, clock: host.clock.now)
        } catch {
            preconditionFailure("\(error)")
        }
        world.prepare(hasBirth: hasBirth, foldsCase: foldsCase)
        if isFaulty { world.state.withLock { $0.isDeaf = true } }
        boot()
        settle()
    }

    package var failure: String? { record.failure }
    package var history: [String] { record.history }
    package var actions: [(stage: Activity.Stage, path: PathBytes?)] {
        activities.map { ($0.stage, $0.invocations.first?.job.event.path) }
    }

    // MARK: The program

    private func boot() {
        guard program == nil else { return }
        program = SimulatedProgram(
            loaded, store, host, CoroutineExecutor(self), perform: { [unowned self] in perform($0, $1) },
            hasWork: { [unowned self] in record.hasTaken($0) }, report: { [unowned self] in take($0) }
        ) { [world] scope, queue in
            let watcher = SimulatedWatcher(world: world, scope: scope, queue: queue)
            self.watcher = watcher
            return watcher
        }
        while watcher?.list() == true {}
        turn(isLeasing: false)
    }

    /// Kills the program, with or without the effects of the started actions.
    private func halt(afterEffects: Bool) {
        guard isRunning else { return }
        for activity in activities where activity.stage == .started && afterEffects { effect(of: activity) }
        for activity in activities {
            activity.isKilled = true
            while !activity.coroutine.isOver { resume(activity) }
        }
        activities = []
        startRows.recordKill()
        record.forgive(self)
        program = nil
        watcher = nil
        do {
            store = try DiskStore(afterKillOf: store, now: world.time, clock: host.clock.now)
        } catch {
            preconditionFailure("\(error)")
        }
    }

    func turn(isLeasing: Bool = true) {
        racesBefore = world.raceCount
        hasUnreadHints = false
        program?.next(isLeasing: isLeasing)
        checkStartRows()
    }

    private func checkStartRows() {
        guard !activities.isEmpty || !startRows.isEmpty else { return }
        let clocks = ClockPair(world.time, host.clock.now())
        let running = rules.compactMap { store.id(of: $0.name) }.flatMap { rule in
            store.unfinishedJobs(of: rule, at: clocks).filter(\.isRunning).map(\.job)
        }
        let isComplete = watcher?.hasWork == false && world.waitingEvents == 0 && !rules.contains(where: \.isPolled)
        let failure = startRows.update(running, in: world, isComplete: isComplete)
        record.failure = record.failure ?? failure
    }

    /// Loads other rules, with the same names.
    package func reload(_ rules: [SimulatedRule]) {
        self.rules = rules
        loaded = rules.map { $0.rule(in: world.base) }
        program?.reload(Ruleset(loaded))
        turn(isLeasing: false)
    }

    var isRunning: Bool { program != nil }
    func isSettling(_ path: PathBytes) -> Bool { program?.isSettling(path) ?? false }

    var nextWake: ContinuousClock.Instant? { program?.nextWake }

    // MARK: Steps

    /// Performs one step.
    ///
    /// Returns false if it is not applicable.
    @discardableResult
    package func take(_ step: Step) -> Bool {
        trace?(step.description)
        // The change happens in this step or later.
        if let operation = world.race { record(operation) }
        defer { record.failure = record.failure ?? invariantFailure() }
        switch step {
        case .world(let operation, let isHintLost):
            record(operation)
            guard world.apply(operation, isHintLost: isHintLost) else { return false }
        case .race(let operation, let inspections):
            world.race(operation, afterInspections: inspections)
        case .drain: return watch { $0.read() }
        case .read: return watch { $0.drainAll() }
        case .list(let path): return watch { [world] in $0.list(path.map { world.base.appending($0.bytes) }) }
        case .poll: watcher?.poll()
        case .wait(let milliseconds): world.advance(by: .milliseconds(milliseconds))
        case .turn: turn(isLeasing: false)
        case .lease: turn()
        case .settle: settle()
        case .begin:
            guard let activity = activities.first(where: { $0.stage == .leased }) else { return false }
            resume(activity)
        case .run(let path), .miss(let path):
            guard let activity = activity(.started, at: path) else { return false }
            if case .run = step { effect(of: activity) }
            activity.stage = .done
        case .ok(let path): return end(path, .succeeded)
        case .fail(let path): return end(path, .retry)
        case .giveUp(let path): return end(path, .failed)
        case .kill, .crash:
            halt(afterEffects: step == .crash)
            boot()
        case .halt: halt(afterEffects: false)
        case .boot: boot()
        case .hint(let path):
            hasUnreadHints = true
            watcher?.queue.add([Hint(path: world.base.appending(path.bytes), signs: .written)])
        case .rescan: program?.rescan()
        case .retry:
            let failed = record.failed
            record.failed = []
            record.retried.formUnion(failed)
            program?.retry(failed)
            turn(isLeasing: false)
        case .hold: program?.pause()
        case .release: program?.resume()
        case .reload: reload(rules)
        case .rest, .failing:
            fails = step == .failing
            let problem = rest()
            fails = false
            record.failure = record.failure ?? problem
        }
        return true
    }

    /// Finishes the action for a path; without its effect, it can't succeed.
    ///
    /// Returns false if there is none.
    private func end(_ path: PathBytes?, _ verdict: Outcome.Result) -> Bool {
        guard let activity = activity(.done, at: path) ?? activity(.started, at: path) else { return false }
        activity.verdict = verdict == .succeeded && !activity.hasEffect ? .retry : verdict
        resume(activity)
        watcher?.drainAll()
        turn(isLeasing: false)
        return true
    }

    /// Lets the watcher work.
    ///
    /// Returns false if it had nothing to do.
    private func watch(_ work: (SimulatedWatcher) -> Bool) -> Bool {
        hasUnreadHints = true
        return watcher.map(work) ?? false
    }

    /// Records that another process changes files.
    private func record(_ operation: Operation) {
        // A change by another process during a repeat may be mistaken for the program's own change.
        let changed = operation.paths.map { world.base.appending($0.bytes) }
        let files = changed.compactMap { world.snapshot($0)?.identity }
        for (rule, paths) in program?.repeats ?? [] {
            let isChanged = paths.contains { path in
                changed.contains { path.isInside($0) || $0.isInside(path) }
                    || world.snapshot(path).map { files.contains($0.identity) } ?? false
            }
            if isChanged { record.markUntracked(Set(paths), rule, self) }
        }
        changedByName.record(changed, in: world)
        let open = Set(activities.flatMap(\.invocations).flatMap { record.outputs[$0.job.id] ?? [] })
        // An output is recorded as it is when the attempt finishes, even if another process has changed it meanwhile.
        record.markUntracked(open.intersection(changed))
    }

    /// Lets time pass until nothing that can settle is unsettled.
    private func settle() {
        watcher?.drainAll()
        turn(isLeasing: false)
        for _ in 0..<12 where program?.isSettling == true {
            let pause = nextWake.map { $0 - host.clock.now() } ?? .zero
            world.advance(by: min(max(pause, .zero), .seconds(1)) + .milliseconds(1))
            turn(isLeasing: false)
        }
    }

    /// Lets everything happen that can without another change of the files.
    ///
    /// - Returns: The reason that this does not finish; nil if it does.
    private func rest() -> String? {
        world.endRace()
        boot()
        world.releaseAll()
        program?.resume()
        watcher?.queue.add(changedByName.hints(in: world))
        var idle = 0
        for round in 0..<3_000 {
            // A job that waits for a file that only polling finds wakes up repeatedly.
            if round % 100 == 99 { watcher?.poll() }
            watcher?.drainAll()
            while watcher?.list() == true {}
            turn()
            if let activity = activities.first {
                idle = 0
                finish(activity)
                continue
            }
            if let wake = nextWake, wake - host.clock.now() < .seconds(3_000) {
                if wake > host.clock.now() { world.advance(by: wake - host.clock.now() + .milliseconds(1)) }
                continue
            }
            guard watcher?.hasWork != true, program?.queue.running == 0 else { continue }
            idle += 1
            if idle > 4 { return nil }
            watcher?.poll()
            world.advance(by: .milliseconds(200))
        }
        return "it does not become idle: \(program?.queue ?? EngineStatus.Queue())"
    }

    private func finish(_ activity: Activity) {
        while !activity.coroutine.isOver {
            if activity.stage == .started {
                effect(of: activity)
                activity.stage = .done
            }
            activity.verdict = activity.hasEffect && !fails ? .succeeded : .retry
            resume(activity)
        }
    }

    /// Performs the steps and all remaining work, and checks the result.
    ///
    /// - Returns: The error; nil if there is none.
    package func run(_ steps: [Step]) -> String? {
        for step in steps where record.failure == nil { take(step) }
        take(.rest)
        let failure = record.failure ?? verdict()
        end()
        return failure
    }

    /// Stops all threads of the run.
    package func end() { halt(afterEffects: false) }

    // MARK: Actions

    /// An attempt.
    package final class Activity {
        package enum Stage { case leased, started, done }

        let coroutine: Coroutine
        var stage = Stage.leased
        var isKilled = false
        /// The action of the attempt, while it runs.
        var action: Action?
        var invocations: [Invocation] = []
        /// Whether the action has had its effect.
        var hasEffect = false
        var verdict = Outcome.Result.retry

        init(_ coroutine: Coroutine) { self.coroutine = coroutine }
    }

    func activity(_ stage: Activity.Stage, at path: PathBytes?) -> Activity? {
        let wanted = path.map { world.base.appending($0.bytes) }
        return activities.first { activity in
            activity.stage == stage
                && (wanted == nil || activity.invocations.contains { $0.job.event.path == wanted })
        }
    }

    private func resume(_ activity: Activity) {
        active = activity
        activity.coroutine.resume()
        active = nil
        if activity.coroutine.isOver { activities.removeAll { $0 === activity } }
    }

    /// Performs an action; called on the coroutine.
    private func perform(_ action: Action, _ invocations: [Invocation]) -> [Outcome] {
        guard let activity = active else { preconditionFailure("an action outside of its attempt") }
        func interrupted() -> [Outcome] { invocations.map { _ in .interrupted("killed") } }
        guard !activity.isKilled else { return interrupted() }
        activity.stage = .started
        activity.action = action
        activity.invocations = invocations
        activity.hasEffect = false
        for invocation in invocations where record.failure == nil {
            record.failure =
                startRows.checkInterrupted(invocation.job) ?? record.checkDeletion(invocation.job, self)
                ?? record.checkOnce(invocation.job, self)
                ?? record.checkAdmission(invocation.job, with: invocations.map(\.job), self)
        }
        activity.coroutine.pause()
        guard !activity.isKilled, !invocations.contains(where: { $0.stop.isRaised }) else { return interrupted() }
        let verdict = activity.verdict
        activity.verdict = .retry
        let isCopied = verdict == .succeeded && action.name == Behaviour.copy.rawValue
        return invocations.map { invocation in
            let outputs = isCopied ? record.outputs[invocation.job.id] ?? [] : []
            if verdict == .succeeded {
                record.recordSuccess(invocation.job, writing: outputs, self)
            } else {
                record.recordFailure(invocation.job)
            }
            return Outcome(verdict, verdict == .succeeded ? "" : "it failed", outputs: outputs)
        }
    }

    /// Applies the effect of a step of the action to the files and to the record.
    private func effect(of activity: Activity) {
        guard let action = activity.action, !activity.hasEffect else { return }
        let behaviour = action.name == "move" ? .take : Behaviour(rawValue: action.name) ?? .read
        // A batch has one outcome here, which the last invocation determines.
        for invocation in activity.invocations {
            let job = invocation.job
            let tail = job.event.tail.map { " text \($0.offset)+\($0.bytes.count)\($0.isReset ? " reset" : "")" } ?? ""
            trace?("  \(behaviour.rawValue) \(job.event.kind) \(job.event.path)\(tail) attempt \(job.attempt)")
            activity.hasEffect = record.perform(behaviour, invocation.job, self)
        }
    }

    // MARK: Reports

    private func take(_ report: EngineReport) {
        if case .accepted(let jobs) = report { record.recordAccepted(jobs, self) }
        for attempt in report.attempts {
            trace?("  \(attempt.state) \(attempt.event) \(attempt.path) \(attempt.outcome.code ?? "")")
            record.record(attempt, self)
            startRows.record(attempt)
        }
    }
}

import ActionAPI
import Engine
import FileEvents
import Gates
import Globbing
import Logging
import Monitoring
import PluginProtocol
import Records
import Rules
import Running
import Storage
import Synchronization
import System
import Testing
import TestKit

/// A recorded call of an action.
struct Call: Sendable {
    var rule: String
    var action: String
    var kind: EventKind
    var path: PathBytes
    var from: PathBytes?
    var attempt: Int
    var steps: Int
    var size: UInt64
    var start: ContinuousClock.Instant
}

/// An engine on its own thread, on the real file system, with actions supplied by tests.
final class EngineRun: Sendable {
    private struct State {
        var calls: [Call] = []
        var attempts: [AttemptReport] = []
        var batches: [[AttemptReport]] = []
        var loopDetected: [PathBytes] = []
        var notices: [String] = []
        var waiting: [String: Int] = [:]
        var isReady = false
        /// The number of directories that were watched when the engine was ready.
        var directories = 0
        /// The number of signs of life.
        var alive = 0
        var reloads = 0
        var refusals: [StartError] = []
        var summary: EngineSummary?
        var lastStatus: EngineStatus?
        var active: [PathBytes: Int] = [:]
        var activePerRule: [String: Int] = [:]
        var mostAtOnce = 0
        var mostPerRule: [String: Int] = [:]
        var mostPerPath = 0
    }

    private let state = Mutex(State())
    private let engine = Mutex<Engine?>(nil)
    private let thread = Mutex<WorkerThread?>(nil)
    let store: DiskStore

    /// Starts an engine and waits until it watches.
    convenience init(
        _ rules: [Rule], jobs: Int = 4, extra: Int = 0, isOnce: Bool = false,
        on store: DiskStore = .inMemory(),
        clock: LocalClock = .system,
        perform: @escaping @Sendable (Action, Invocation) -> Outcome = { _, _ in Outcome(.succeeded) }
    ) {
        self.init(rules, jobs: jobs, extra: extra, isOnce: isOnce, on: store, clock: clock) { action, invocations in
            invocations.map { perform(action, $0) }
        }
    }

    /// Starts an engine whose actions receive several events at once.
    init(
        _ rules: [Rule], jobs: Int = 4, extra: Int = 0, isOnce: Bool = false,
        on store: DiskStore = .inMemory(),
        clock: LocalClock = .system, timeout: Duration = .seconds(600), signOfLife: Duration? = nil,
        batched perform: @escaping @Sendable (Action, [Invocation]) -> [Outcome]
    ) {
        self.store = store
        var options = EngineOptions(jobs: jobs, isOnce: isOnce)
        options.extraJobs = extra
        options.clock = clock
        options.timeout = timeout
        options.signOfLife = signOfLife
        let engine = Engine(
            ruleset: Ruleset(rules), options: options, store: store,
            perform: { [self] action, invocations in
                for invocation in invocations where await !invocation.mayStart() {
                    return invocations.map { _ in .interrupted("it may not start") }
                }
                for invocation in invocations { recordStart(action, invocation) }
                defer { for invocation in invocations { recordEnd(invocation) } }
                return perform(action, invocations)
            }, log: .silent,
            report: { [self] in record($0) })
        self.engine.withLock { $0 = engine }
        let started = WorkerThread(name: "engine") { [self] in
            let summary = try? engine.run()
            state.withLock { $0.summary = summary }
        }
        precondition(started != nil, "no thread for the engine")
        thread.withLock { $0 = started }
        let isReady = Deadline.wait { self.state.withLock { $0.isReady || $0.summary != nil } }
        precondition(isReady, "the engine did not get ready")
    }

    private func record(_ report: EngineReport) {
        state.withLock { state in
            switch report {
            case .ready(let directories, _):
                state.isReady = true
                state.directories = directories
            case .alive: state.alive += 1
            case .reloaded: state.reloads += 1
            case .notReloaded(let error): state.refusals.append(error)
            case .attempt(let attempt): state.attempts.append(attempt)
            case .batch(let attempts):
                state.attempts += attempts
                state.batches.append(attempts)
            case .loopDetected(_, let path, _, _): state.loopDetected.append(path)
            case .slowed(let rule, let failures, _, let message):
                state.notices.append("\(rule) slowed after \(failures): \(message)")
            case .recovered(let rule): state.notices.append("\(rule) recovered")
            case .incomplete(let rule, let path, let missing, _):
                state.notices.append("\(rule) lacks \(missing) for \(path)")
            case .longWait(let wait): state.notices.append("\(wait.rule) waits: \(wait.waiting.cause.rawValue)")
            case .closed(let rule, let opens): state.notices.append("\(rule) opens at \(opens)")
            case .waiting(let rule, let jobs): state.waiting[rule] = jobs
            case .superseded(let rule, _, let path, _): state.notices.append("\(rule) superseded \(path)")
            default: break
            }
        }
    }

    private func recordStart(_ action: Action, _ invocation: Invocation) {
        let event = invocation.job.event
        state.withLock { state in
            state.calls.append(
                Call(
                    rule: invocation.job.rule, action: action.name, kind: event.kind, path: event.path,
                    from: event.from, attempt: invocation.job.attempt, steps: invocation.steps.count,
                    size: event.snapshot.size, start: .now))
            state.active[event.path, default: 0] += 1
            state.activePerRule[invocation.job.rule, default: 0] += 1
            state.mostAtOnce = max(state.mostAtOnce, state.active.values.reduce(0, +))
            state.mostPerPath = max(state.mostPerPath, state.active[event.path, default: 0])
            state.mostPerRule[invocation.job.rule] = max(
                state.mostPerRule[invocation.job.rule, default: 0], state.activePerRule[invocation.job.rule, default: 0]
            )
        }
    }

    private func recordEnd(_ invocation: Invocation) {
        state.withLock { state in
            state.active[invocation.job.event.path, default: 1] -= 1
            state.activePerRule[invocation.job.rule, default: 1] -= 1
        }
    }

    // MARK: Observations

    var calls: [Call] { state.withLock { $0.calls } }
    var attempts: [AttemptReport] { state.withLock { $0.attempts } }
    var batches: [[AttemptReport]] { state.withLock { $0.batches } }
    var loopDetected: [PathBytes] { state.withLock { $0.loopDetected } }
    /// Reports other than attempts: rules that are slowed down or recover, and jobs that are superseded.
    var notices: [String] { state.withLock { $0.notices } }
    /// The number of jobs that wait for rules that are not loaded.
    var waiting: [String: Int] { state.withLock { $0.waiting } }
    var directories: Int { state.withLock { $0.directories } }
    var alive: Int { state.withLock { $0.alive } }
    /// How often new rules were ready.
    var reloads: Int { state.withLock { $0.reloads } }
    /// The reasons that new rules were refused.
    var refusals: [StartError] { state.withLock { $0.refusals } }
    var mostAtOnce: Int { state.withLock { $0.mostAtOnce } }
    var mostPerPath: Int { state.withLock { $0.mostPerPath } }
    func mostAtOnce(of rule: String) -> Int { state.withLock { $0.mostPerRule[rule, default: 0] } }
    var summary: EngineSummary? { state.withLock { $0.summary } }

    /// The calls as words: `rule kind name`, with `from name` for a move.
    var received: [String] {
        calls.map { call in
            let from = call.from.map { " from \(String(decoding: $0.lastComponent, as: UTF8.self))" } ?? ""
            let name = String(decoding: call.path.lastComponent, as: UTF8.self)
            return "\(call.rule) \(call.kind.rawValue) \(name)\(from)"
        }
    }

    var status: EngineStatus? { engine.withLock { $0 }?.status(at: .now) ?? state.withLock { $0.lastStatus } }
    /// The numbers of unfinished jobs; due paths count as pending.
    var queue: EngineStatus.Queue { status?.queue ?? EngineStatus.Queue() }
    /// The numbers of jobs that have ended since the start.
    var counts: EngineStatus.Counts { status?.counts ?? EngineStatus.Counts() }

    /// The paths that wait for their actions, while the engine runs.
    var due: [DuePath] { engine.withLock { $0 }?.duePaths(limit: .max, within: .seconds(20))?.paths ?? [] }
    /// The paths that wait for something other than a slot.
    var held: [DuePath] { due.filter { $0.reason != nil } }

    /// Waits until a path has settled and its action is due, after the given time; by default at any time.
    func isDue(_ path: PathBytes, since time: Timestamp = Timestamp(seconds: 0, nanoseconds: 0)) -> Bool {
        Deadline.wait { self.due.contains { $0.path == path && $0.since > time } }
    }

    /// Waits until no job runs or waits.
    var isIdle: Bool { Deadline.wait { self.queue.count == 0 && self.status?.settling == 0 } }

    /// Waits until the given number of attempts have finished and been recorded.
    func ended(_ count: Int) -> Bool { Deadline.wait { self.attempts.count >= count } }

    // MARK: Stopping

    func reload(_ rules: [Rule]) { engine.withLock { $0 }?.reload(Ruleset(rules)) }
    /// Replaces the rules and waits until the new ones are watched.
    func reloadAndWait(_ rules: [Rule]) -> Bool {
        let before = reloads
        reload(rules)
        return Deadline.wait { self.reloads > before }
    }
    /// Carries out a request for jobs, and waits until it is stored.
    func carryOut(_ command: JobCommand) -> Bool {
        let isStored = Locked(false)
        engine.withLock { $0 }?.carryOut(command) { isStored.change { $0 = true } }
        return Deadline.wait { isStored.value }
    }

    /// Returns the stored state of a job.
    func state(of job: JobID) -> JobState? { store.job(job, at: ClockPair(DiskProbe.now(), .now))?.state }

    func pause(_ rule: String?) { engine.withLock { $0 }?.pause(rule) }
    func resume(_ rule: String?) { engine.withLock { $0 }?.resume(rule) }
    func rescan() { engine.withLock { $0 }?.rescan() }
    func askToStop() { engine.withLock { $0 }?.stop() }
    func askToStopAtOnce() { engine.withLock { $0 }?.stopAtOnce() }

    /// Waits for the engine to finish.
    ///
    /// Returns nil if it does not finish in time.
    func end(within limit: Duration = .seconds(90)) -> EngineSummary? {
        guard Deadline.wait(within: limit, until: { self.summary != nil }) else { return nil }
        thread.withLock { thread in
            thread?.join()
            thread = nil
        }
        let last = status
        state.withLock { $0.lastStatus = last }
        engine.withLock { $0 = nil }
        return summary
    }

    /// Stops the engine after all due work is done.
    @discardableResult
    func stop() -> EngineSummary? {
        askToStop()
        return end()
    }
}

extension Rule {
    /// A rule as the loader would create it, with a short settle time.
    static func sample(
        _ name: String, _ globs: [PathBytes], events: EventMask = [.created, .modified],
        settle: Duration = .milliseconds(30), actions: [String] = ["act"], isProgram: Bool = false,
        concurrency: Int = 1, retry: RetryPolicy = RetryPolicy(), timeout: Duration = .seconds(60)
    ) -> Rule {
        let location = SourcePosition(file: "rules.yaml", line: 1, column: 1)
        return Rule(
            name: name, location: location, filter: PathFilter(globs: globs.compactMap { try? Glob($0.bytes) }),
            events: events, settle: SettlePolicy(quiet: settle),
            actions: actions.map { action in
                let reference = HandlerReference(name: action, location: isProgram ? "/plugins/x" : nil)
                return Action(
                    .use(reference, with: .object([:])), location: location, traits: isProgram ? [] : .ofHandler(action)
                )
            }, timeout: timeout, concurrency: concurrency, retry: retry)
    }
}

/// A gate at which actions wait until a test opens it.
final class Gate: Sendable {
    private let isOpen = Atomic(false)

    func open() { isOpen.store(true, ordering: .releasing) }

    /// Waits for the gate to open, with a time limit.
    func pass() { _ = Deadline.wait(within: .seconds(300)) { self.isOpen.load(ordering: .acquiring) } }
}

extension Rule {
    /// Returns the rule with some keys changed.
    func with(_ change: (inout Rule) -> Void) -> Rule {
        var rule = self
        change(&rule)
        return rule
    }
}

extension DiskStore {
    /// A store that exists only for its test.
    static func inMemory() -> DiskStore {
        do {
            return try DiskStore(inMemory: nil, now: DiskProbe.now())
        } catch {
            preconditionFailure("\(error)")
        }
    }
}

extension Logger {
    /// A log that discards everything.
    static let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
}

extension HandlerTraits {
    /// Returns the traits of the built-in handlers that tests name.
    static func ofHandler(_ name: String) -> HandlerTraits {
        switch name {
        case "copy", "log": .isBrief
        case "move": [.isBrief, .removesInput]
        case "delete": .removesInput
        default: []
        }
    }
}

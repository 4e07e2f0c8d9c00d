import ActionAPI
import Engine
import FileEvents
import Monitoring
import PluginProtocol
import Reconciling
import Records
import Rules
import Running
import Simulation
import Storage
import Synchronization
import System
import Watching

/// The engine with one rule in a simulated world; its actions end as a script says.
///
/// The script is a list of ends of actions, separated by commas. What is not listed succeeds.
///
/// | | |
/// | --- | --- |
/// | `succeed`, `skip`, `refuse`, `gone`, `fail`, `retry`, `not-ready` | the outcome |
/// | `status`, `timeout`, `crash` | a program exits with an unknown status, is stopped at its timeout, dies by a signal |
/// | `stop` | the action is interrupted |
/// | `kill` | Alight is killed while the action runs, and starts again |
/// | `write a + retry` | the action changes a file before |
/// | `retry & write a` | another process changes a file afterwards, when the outcome is recorded |
final class OutcomeScene {
    private final class State: Sendable {
        struct Values {
            var script: [String] = []
            var calls: [String] = []
            var reports: [String] = []
            var jobs: [JobID] = []
            var isKilled = false
            /// The change of a file that follows.
            var following: Operation?
            /// The attempts that run, in order.
            var running: [Coroutine] = []
        }

        let values = Mutex(Values())
    }

    /// Runs attempts in steps, between two turns.
    private final class Executor: AttemptExecutor {
        let state: State

        init(state: State) { self.state = state }

        func submit(_ work: [@Sendable () async -> Void], isQuick: Bool) {
            for attempt in work { Task(executorPreference: self) { await attempt() } }
        }

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            let coroutine = Coroutine { [self] _ in job.runSynchronously(on: asUnownedTaskExecutor()) }
            state.values.withLock { $0.running.append(coroutine) }
        }

        func wakeRest() {}
    }

    private let world = World()
    private let host: Host
    private let rule: Rule
    private let state = State()
    private var store: DiskStore
    private var program: Program?

    /// A run of the program, until a kill.
    private final class Program {
        let engine: Engine
        var loop: EngineLoop
        let watcher: SimulatedWatcher

        init(_ rule: Rule, _ store: DiskStore, _ host: Host, in world: World, _ state: State) {
            var options = EngineOptions(jobs: 1)
            options.host = host
            options.clock = LocalClock { _ in 0 }
            options.executor = Executor(state: state)
            options.hasWork = { _, _, _ in false }
            engine = Engine(
                ruleset: Ruleset([rule]), options: options, store: store,
                perform: { action, invocations in
                    invocations.map { OutcomeScene.perform(action, $0, in: world, state) }
                }, log: .silent, report: { OutcomeScene.record($0, state) })
            var started: SimulatedWatcher?
            do {
                loop = try EngineLoop(engine) { scope, queue in
                    let watcher = SimulatedWatcher(world: world, scope: scope, queue: queue)
                    started = watcher
                    return watcher
                }
            } catch {
                preconditionFailure("\(error)")
            }
            guard let started else { preconditionFailure("nothing is watched") }
            watcher = started
        }

        func turn() {
            while watcher.list() {}
            watcher.drainAll()
            _ = loop.next()
        }
    }

    init(_ rule: (PathBytes) -> Rule) {
        let (world, start) = (world, ContinuousClock.now)
        self.rule = rule(world.base)
        var clock = Clock()
        clock.now = { start + world.elapsed }
        clock.time = { world.time }
        clock.fileTime = { world.time.advanced(by: .milliseconds(-2)) }
        host = Host(fileSystem: world, clock: clock, random: { 1 })
        do {
            store = try DiskStore(inMemory: nil, now: world.time, clock: host.clock.now)
        } catch {
            preconditionFailure("\(error)")
        }
        boot()
    }

    private func boot() {
        program = Program(rule, store, host, in: world, state)
        program?.turn()
        program?.turn()
    }

    private func kill() {
        program = nil
        do {
            store = try DiskStore(afterKillOf: store, now: world.time, clock: host.clock.now)
        } catch {
            preconditionFailure("\(error)")
        }
        boot()
    }

    // MARK: Actions

    private static func perform(_ action: Action, _ invocation: Invocation, in world: World, _ state: State) -> Outcome
    {
        let job = invocation.job
        state.values.withLock { values in
            if !values.jobs.contains(job.id) { values.jobs.append(job.id) }
            let suffix = job.isInterrupted ? " interrupted" : ""
            values.calls.append("\(action.name) \(job.event.kind) \(job.attempt)\(suffix)")
        }
        state.values.withLock { $0.running.first }?.pause()
        let line = state.values.withLock { $0.script.isEmpty ? "succeed" : $0.script.removeFirst() }
        let parts = line.split(separator: " & ").map(String.init)
        let words = parts[0].split(separator: " + ").map(String.init)
        if words.count > 1, let operation = Operation(words[0]) { world.apply(operation) }
        state.values.withLock { $0.following = parts.count > 1 ? Operation(parts[1]) : nil }
        switch words[words.count - 1] {
        case "succeed": return Outcome(.succeeded)
        case "skip": return Outcome(.skipped)
        case "refuse": return Outcome(.skipped, code: "where")
        case "gone": return Outcome(.skipped, code: "gone")
        case "fail": return Outcome(.failed)
        case "retry": return Outcome(.retry)
        case "retry-soon": return Outcome(.retry, retryAfter: .seconds(3))
        case "not-ready": return Outcome(.notReady)
        case "status": return .uncertain(.retry, "", code: "status-1")
        case "timeout": return .timedOut("")
        case "crash":
            var outcome = Outcome.uncertain(.retry, "", code: "signal")
            outcome.process = ProcessDetails(signal: 11, request: "")
            return outcome
        case "stop": return .interrupted("")
        case "kill":
            state.values.withLock { $0.isKilled = true }
            return .interrupted("")
        default: preconditionFailure("no outcome: '\(line)'")
        }
    }

    private static func record(_ report: EngineReport, _ state: State) {
        let superseded: AttemptReport? = if case .superseded(_, _, _, let ended) = report { ended } else { nil }
        for attempt in report.attempts + [superseded].compactMap(\.self) {
            let pause = attempt.pause.map { " after \(Int($0 / .seconds(1)))s" } ?? ""
            let code = attempt.outcome.code.map { " \($0)" } ?? ""
            state.values.withLock { $0.reports.append("\(attempt.state) \(attempt.attempt)\(pause)\(code)") }
        }
    }

    // MARK: The run

    /// Creates the file `a`, and lets everything happen; then retries failed jobs on behalf of the user if asked.
    func run(_ script: String, isRetried: Bool) {
        state.values.withLock { $0.script = script.split(separator: ", ").map(String.init) }
        world.apply(.create("a"))
        rest()
        guard isRetried else { return }
        program?.engine.carryOut(.retry(state.values.withLock { $0.jobs })) {}
        rest()
    }

    private func rest() {
        var idle = 0
        while idle < 3 {
            program?.turn()
            if let attempt = state.values.withLock({ $0.running.first }) {
                idle = 0
                attempt.resume()
                endAttempt(attempt)
                continue
            }
            let now = host.clock.now()
            if let wake = program?.loop.nextWake, wake < now + .seconds(600) {
                world.advance(by: max(.milliseconds(1), wake - now))
            } else {
                idle += 1
                world.advance(by: .seconds(3))
            }
        }
    }

    private func endAttempt(_ attempt: Coroutine) {
        let (isKilled, following) = state.values.withLock { values in
            if attempt.isOver { values.running.removeFirst() }
            defer { (values.isKilled, values.following) = (false, nil) }
            return (values.isKilled, values.following)
        }
        if isKilled { kill() }
        guard let following else { return }
        program?.turn()
        world.apply(following)
    }

    var calls: String { state.values.withLock { $0.calls.joined(separator: ", ") } }
    var reports: String { state.values.withLock { $0.reports.joined(separator: ", ") } }

    /// The states of the jobs in the journal.
    var jobs: String {
        let clocks = ClockPair(world.time, host.clock.now())
        return state.values.withLock { $0.jobs }.map { store.job($0, at: clocks)?.state.rawValue ?? "–" }
            .joined(separator: ", ")
    }

    /// The row of the file; `old` if it is no longer as it was handled.
    var row: String {
        let path = world.base.appending("a")
        guard let id = store.id(of: rule.name), let row = store.row(of: id, at: path) else { return "" }
        let now = world.snapshot(path)
        let isOld = row.handled.map { handled in now.map { !handled.isUnchanged($0) } ?? true } ?? (now != nil)
        return (row.isSuppressed ? "withheld" : "\(row.trust)") + (isOld ? " old" : "")
    }
}

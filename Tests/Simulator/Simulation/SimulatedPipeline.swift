import ActionAPI
import Logging
import Pipeline
import Reconciling
import Rules
import Settling
import Storage
import System
import Watching

extension DiskStore: SimulatedStorage {
    func start(
        _ rules: [Rule], _ host: Host, _ executor: any AttemptExecutor,
        perform: @escaping @Sendable (Action, [Invocation]) -> [Outcome],
        hasWork: @escaping @Sendable (JobID) -> Bool, report: @escaping @Sendable (EngineReport) -> Void,
        watching: (WatchScope, HintQueue) -> any HintProducer
    ) -> any SimulatedProgram {
        var options = Engine.Options(jobs: 8)
        options.host = host
        options.clock = LocalClock { _ in 0 }
        options.executor = executor
        options.hasWork = { hasWork($2.id) }
        let engine = Engine(
            ruleset: Ruleset(rules), options: options, store: self, perform: perform, log: .silent, report: report)
        return NewProgram(engine, self, host, watching)
    }
}

private final class NewProgram: SimulatedProgram {
    private let engine: Engine
    private let store: DiskStore
    private let host: Host
    private var loop: EngineLoop?

    init(
        _ engine: Engine, _ store: DiskStore, _ host: Host,
        _ watching: (WatchScope, HintQueue) -> any HintProducer
    ) {
        self.engine = engine
        self.store = store
        self.host = host
        do {
            loop = try EngineLoop(engine, watching: watching)
        } catch {
            preconditionFailure("\(error)")
        }
    }

    var nextWake: ContinuousClock.Instant? { loop?.nextWake }
    var repeats: [(rule: String, paths: [PathBytes])] { loop?.repeats ?? [] }
    var isSettling: Bool { loop?.isSettling ?? false }
    func isSettling(_ path: PathBytes) -> Bool { loop?.isSettling(path) ?? false }
    func next(isLeasing: Bool) { _ = loop?.next(isLeasing: isLeasing) }
    func pause() { engine.pause(nil) }
    func resume() { engine.resume(nil) }
    func rescan() { engine.rescan() }
    func retry(_ jobs: [JobID]) { engine.carryOut(.retry(jobs)) {} }
    func reload(_ ruleset: Ruleset) { engine.reload(ruleset) }
    var counts: JobCounts { loop?.counts ?? JobCounts() }
    func handled(_ rule: String, _ path: PathBytes) -> Snapshot? { loop?.row(of: rule, at: path)?.handled }
    func visit(_ rule: String, inside directory: PathBytes, _ body: (PathBytes, Snapshot) -> Void) {
        loop?.visit(rule, inside: directory) { path, row in if let handled = row.handled { body(path, handled) } }
    }
    func hasPending(_ rule: String, _ path: PathBytes) -> Bool { loop?.isDue(path, for: rule) ?? false }
    func offersFile(_ rule: String, _ path: PathBytes) -> Bool { hasPending(rule, path) }

    func afterKill(_ world: World) -> any SimulatedStorage {
        loop = nil
        do {
            return try DiskStore(afterKillOf: store, now: world.time, clock: host.clock.now)
        } catch {
            preconditionFailure("\(error)")
        }
    }
}

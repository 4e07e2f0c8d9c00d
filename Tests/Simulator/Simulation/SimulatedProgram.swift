import ActionAPI
import Engine
import FileEvents
import Logging
import Monitoring
import Reconciling
import Records
import Rules
import Running
import Storage
import System
import Watching

/// The engine with its store, run turn by turn.
final class SimulatedProgram {
    private let engine: Engine
    private var loop: EngineLoop

    /// Starts the program.
    init(
        _ rules: [Rule], _ store: DiskStore, _ host: Host, _ executor: any AttemptExecutor,
        perform: @escaping @Sendable (Action, [Invocation]) -> [Outcome],
        hasWork: @escaping @Sendable (JobID) -> Bool, report: @escaping @Sendable (EngineReport) -> Void,
        watching: (WatchScope, HintQueue) -> any HintProducer
    ) {
        var options = EngineOptions(jobs: 8)
        options.host = host
        options.clock = LocalClock { _ in 0 }
        options.executor = executor
        options.hasWork = { hasWork($2.id) }
        let log = Logger(label: "simulation") { _ in SwiftLogNoOpLogHandler() }
        engine = Engine(
            ruleset: Ruleset(rules), options: options, store: store, perform: perform, log: log, report: report)
        do {
            loop = try EngineLoop(engine, watching: watching)
        } catch {
            preconditionFailure("\(error)")
        }
    }

    var nextWake: ContinuousClock.Instant? { loop.nextWake }
    /// The paths of jobs that consist only of a change made by their own program.
    var repeats: [(rule: String, paths: [PathBytes])] { loop.repeats }
    var isSettling: Bool { loop.isSettling }
    func isSettling(_ path: PathBytes) -> Bool { loop.isSettling(path) }
    func next(isLeasing: Bool) { _ = loop.next(isLeasing: isLeasing) }
    func pause() { engine.pause(nil) }
    func resume() { engine.resume(nil) }
    func rescan() { engine.rescan() }
    func retry(_ jobs: [JobID]) { engine.carryOut(.retry(jobs)) {} }
    func reload(_ ruleset: Ruleset) { engine.reload(ruleset) }
    var queue: EngineStatus.Queue { loop.queue }
    /// Returns the file that the ledger has for a path.
    func handled(_ rule: String, _ path: PathBytes) -> Snapshot? { loop.row(of: rule, at: path)?.handled }
    func visit(_ rule: String, inside directory: PathBytes, _ body: (PathBytes, LedgerRow) -> Void) {
        loop.visit(rule, inside: directory, body)
    }
    /// Whether a job for a path runs, or its result waits in a series for that of another one.
    func isRunning(_ rule: String, _ path: PathBytes) -> Bool { loop.isRunning(path, for: rule) }
    /// Whether a path has a job that does not run, or is due.
    func hasPending(_ rule: String, _ path: PathBytes) -> Bool { loop.isDue(path, for: rule) }
}

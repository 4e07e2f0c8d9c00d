import Engine
import FileEvents
import FileWatching
import Handling
import Journaling
import LedgerReconciling
import Logging
import Rules
import Settling

/// The core as a simulated run uses it.
protocol SimulatedProgram: AnyObject {
    var nextWake: ContinuousClock.Instant? { get }
    var isSettling: Bool { get }
    func isSettling(_ path: PathBytes) -> Bool
    func next(isLeasing: Bool)
    func pause()
    func resume()
    func rescan()
    func retry(_ jobs: [JobID])
    func reload(_ ruleset: Ruleset)

    var counts: JobCounts { get }
    /// The file that the ledger has at a path.
    func handled(_ rule: String, _ path: PathBytes) -> Snapshot?
    func visit(_ rule: String, inside directory: PathBytes, _ body: (PathBytes, Snapshot) -> Void)
    /// Whether a path has a job that does not run, or is due.
    func hasPending(_ rule: String, _ path: PathBytes) -> Bool
    /// The paths of jobs that are nothing but a change which their own program left.
    var repeats: [(rule: String, paths: [PathBytes])] { get }
    /// Whether a job that does not run offers a file at the path.
    func offersFile(_ rule: String, _ path: PathBytes) -> Bool

    /// The program as it starts again after a kill.
    func afterKill(_ world: World) -> any SimulatedStorage
}

/// What outlives a kill.
protocol SimulatedStorage {
    func start(
        _ rules: [Rule], _ host: Host, _ executor: any AttemptExecutor,
        perform: @escaping @Sendable (Action, [Invocation]) -> [Outcome],
        hasWork: @escaping @Sendable (JobID) -> Bool, report: @escaping @Sendable (EngineReport) -> Void,
        watching: (WatchScope, HintQueue) -> any HintProducer
    ) -> any SimulatedProgram
}

extension DiskJournal: SimulatedStorage {
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
        let engine = Engine(
            ruleset: Ruleset(rules), options: options, journal: self, perform: perform, log: .silent, report: report)
        return OldProgram(engine, self, host, watching)
    }
}

private final class OldProgram: SimulatedProgram {
    private let engine: Engine
    private let journal: DiskJournal
    private let host: Host
    private var turns: EngineTurns?

    init(
        _ engine: Engine, _ journal: DiskJournal, _ host: Host,
        _ watching: (WatchScope, HintQueue) -> any HintProducer
    ) {
        self.engine = engine
        self.journal = journal
        self.host = host
        do {
            turns = try EngineTurns(engine, watching: watching)
        } catch {
            preconditionFailure("\(error)")
        }
    }

    var nextWake: ContinuousClock.Instant? { turns?.nextWake }
    var repeats: [(rule: String, paths: [PathBytes])] { [] }
    var isSettling: Bool { turns?.isSettling ?? false }
    func isSettling(_ path: PathBytes) -> Bool { turns?.isSettling(path) ?? false }
    func next(isLeasing: Bool) { _ = turns?.next(isLeasing: isLeasing) }
    func pause() { engine.pause(nil) }
    func resume() { engine.resume(nil) }
    func rescan() { engine.rescan() }
    func retry(_ jobs: [JobID]) { engine.carryOut(.retry(jobs)) {} }
    func reload(_ ruleset: Ruleset) { engine.reload(ruleset) }
    var counts: JobCounts { journal.counts }
    func handled(_ rule: String, _ path: PathBytes) -> Snapshot? { journal.snapshot(view: rule, path: path) }
    func visit(_ rule: String, inside directory: PathBytes, _ body: (PathBytes, Snapshot) -> Void) {
        journal.visit(view: rule, inside: directory, body)
    }
    func hasPending(_ rule: String, _ path: PathBytes) -> Bool { journal.hasPending(view: rule, path: path) }
    func offersFile(_ rule: String, _ path: PathBytes) -> Bool { journal.pendingEvent(view: rule, path: path) != nil }

    func afterKill(_ world: World) -> any SimulatedStorage {
        turns = nil
        do {
            return try DiskJournal(afterKillOf: journal, now: world.time, clock: host.clock.now)
        } catch {
            preconditionFailure("\(error)")
        }
    }
}

extension Logger {
    static var silent: Logger { Logger(label: "simulation") { _ in SwiftLogNoOpLogHandler() } }
}

import ActionAPI
import Logging
import Pipeline
import Rules
import Settling
import Storage
import System
import Watching

/// The core, as used by a simulated run.
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
    /// Returns the file that the ledger has for a path.
    func handled(_ rule: String, _ path: PathBytes) -> Snapshot?
    func visit(_ rule: String, inside directory: PathBytes, _ body: (PathBytes, Snapshot) -> Void)
    /// Whether a path has a job that does not run, or is due.
    func hasPending(_ rule: String, _ path: PathBytes) -> Bool
    /// The paths of jobs that consist only of a change made by their own program.
    var repeats: [(rule: String, paths: [PathBytes])] { get }
    /// Whether a job that does not run offers a file at the path.
    func offersFile(_ rule: String, _ path: PathBytes) -> Bool

    /// Returns the storage of the program, with which it starts again after a kill.
    func afterKill(_ world: World) -> any SimulatedStorage
}

/// The state that survives a kill.
protocol SimulatedStorage {
    func start(
        _ rules: [Rule], _ host: Host, _ executor: any AttemptExecutor,
        perform: @escaping @Sendable (Action, [Invocation]) -> [Outcome],
        hasWork: @escaping @Sendable (JobID) -> Bool, report: @escaping @Sendable (EngineReport) -> Void,
        watching: (WatchScope, HintQueue) -> any HintProducer
    ) -> any SimulatedProgram
}

extension Logger {
    static var silent: Logger { Logger(label: "simulation") { _ in SwiftLogNoOpLogHandler() } }
}

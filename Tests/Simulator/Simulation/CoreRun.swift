import FileEvents
package import Reconciling
package import System

/// The code that runs in a simulated world.
package enum SimulatedCore: Equatable {
    /// The engine, with its ledger in SQLite.
    case engine
    /// The reconciler of `Sources/Pipeline`, with its ledger in memory.
    case ledger(omitting: CoreRule? = nil)
}

/// A core that runs in a simulated world, step by step.
package protocol CoreRun: AnyObject {
    var world: World { get }
    var rules: [SimulatedRule] { get }
    /// The first error; nil if there is none.
    var failure: String? { get }
    /// Everything that actions received and did.
    var history: [String] { get }
    /// The stage of each started action, and its path.
    var actions: [(stage: ActionStage, path: PathBytes?)] { get }
    /// Performs one step. Returns false if it is not applicable.
    @discardableResult func take(_ step: Step) -> Bool
    /// Performs the steps and all remaining work, and checks the result.
    func run(_ steps: [Step]) -> String?
    var trace: (@Sendable (String) -> Void)? { get set }
    /// Checks the invariant between two steps.
    func checkInvariant()
}

package enum ActionStage { case leased, started, done }

extension World {
    private static let origin = ContinuousClock.now

    /// Creates the directories of a run.
    func prepare(hasBirth: Bool, foldsCase: Bool) {
        for directory in ["x/", "y/", "o/"] { apply(.mkdir(PathBytes(directory))) }
        if foldsCase { foldCase(in: "") }
        if !hasBirth { dropBirthTimes(in: "") }
    }

    /// The disk and the clocks of a program that runs in the world.
    var host: Host {
        let clock = Clock(
            now: { Self.origin + self.elapsed }, time: { self.time },
            fileTime: { self.time.advanced(by: .milliseconds(-2)) })
        return Host(fileSystem: self, clock: clock, random: { 0.5 })
    }

    /// Closes all files that are open for writing, and makes all directories readable.
    func releaseAll() {
        for (path, _) in files(below: base).sorted(by: { $0.key < $1.key }) {
            while isBeingWritten(path) { apply(.close(name(of: path))) }
        }
        for directory in ["x/", "y/", "z/", "o/"] { apply(.show(PathBytes(directory))) }
    }

    /// Compares the directories that a rule handles as one unit with what its action has read of them.
    ///
    /// - Returns: The error; nil if there is none.
    func verdict(
        onTrees known: [PathBytes: [PathBytes: Int]], except untracked: Set<PathBytes>, of matches: (PathBytes) -> Bool
    ) -> String? {
        let present = entries(of: base).map { base.appending($0.bytes) }.filter {
            snapshot($0)?.type == .directory && matches($0)
        }
        for path in Set(present).union(known.keys).sorted() where !untracked.contains(path) {
            if (present.contains(path) ? tree(path) : [:]) != known[path] ?? [:] {
                return "\(name(of: path)): the mirror has another tree than the disk"
            }
        }
        return nil
    }
}

/// The files with several names that were changed, each with the name used.
struct ChangedNames {
    private var changes: [(file: FileIdentity, path: PathBytes)] = []

    func contains(_ file: FileIdentity) -> Bool { changes.contains { $0.file == file } }

    /// Records that another process changes files.
    mutating func record(_ paths: [PathBytes], in world: World) {
        for path in paths {
            if let file = world.snapshot(path), file.links > 1 { changes.append((file.identity, path)) }
        }
    }

    /// Returns the hints with which the program notices the changes through names that have been removed.
    func hints(in world: World) -> [Hint] {
        let gone = Set(changes.filter { world.snapshot($0.path)?.identity != $0.file }.map(\.file))
        return world.files(below: world.base).filter { gone.contains($0.value.identity) }.keys.sorted().map {
            Hint(path: $0, signs: .attributes)
        }
    }
}

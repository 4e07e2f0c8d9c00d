import FileEvents
import Synchronization

/// All plugins that serve, by what their processes are started with.
package final class ServingPlugins: Sendable {
    /// All by which processes could differ; hashed once, and not while others wait for the lock.
    private struct Surroundings: Sendable, Hashable {
        private let bytes: [UInt8]
        private let digest: Int

        init(_ bytes: [UInt8]) {
            self.bytes = bytes
            var hasher = Hasher()
            bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
            digest = hasher.finalize()
        }

        func hash(into hasher: inout Hasher) { hasher.combine(digest) }
    }

    private struct State: Sendable {
        /// By the header that their processes get, in which is all by which they could differ, and by how many there are.
        var pools: [Surroundings: ServingPool] = [:]
        /// The pools of each plugin, by its place.
        var places: [PathBytes: Place] = [:]
        var isClosed = false
        /// When all plugins were looked at last.
        var looked: ContinuousClock.Instant?
    }

    private struct Place: Sendable {
        var files: [PathBytes]
        var stamps: [FileStamp?]
        var keys: Set<Surroundings>
        let seats: SharedSeats
    }

    /// How often plugins that get no request are looked at while others get some.
    private static let pause = Duration.seconds(1)

    private let launcher: ProcessLauncher
    private let scratchFolders: ScratchFolders
    private let limits: ServeLimits
    private let state = Mutex(State())

    package init(launcher: ProcessLauncher, scratchFolders: ScratchFolders, limits: ServeLimits) {
        self.launcher = launcher
        self.scratchFolders = scratchFolders
        self.limits = limits
    }

    /// The processes for a program; those of a plugin whose files have changed are replaced.
    ///
    /// - Parameters:
    ///   - program: What is started.
    ///   - place: The plugin's place.
    ///   - files: What it is made of; a change of one replaces its processes.
    /// - Returns: Nil when all is closed.
    /// - Throws: Why such a program can't be started.
    func pool(
        _ program: ServedProgram, place: PathBytes, files: [PathBytes]
    ) throws(LaunchFailure) -> ServingPool? {
        guard let plan = LaunchPlan(program.command, descriptorLimit: 0) else { throw .holdsNUL }
        let key = Surroundings(plan.bytes + Array("\(program.parallel) \(program.concurrent)".utf8))
        let stamps = files.map { FileStamp($0) }
        let (pool, outdated) = state.withLock { state -> (ServingPool?, [ServingPool]) in
            guard !state.isClosed else { return (nil, []) }
            if state.pools.isEmpty { scratchFolders.removeAbandoned() }
            var known =
                state.places[place]
                ?? Place(files: files, stamps: stamps, keys: [], seats: SharedSeats(most: program.parallel))
            var outdated = known.stamps == stamps ? [] : known.keys.compactMap { state.pools[$0] }
            known.files = files
            known.stamps = stamps
            known.keys.insert(key)
            known.seats.change(most: program.parallel)
            state.places[place] = known
            if state.looked.map({ ContinuousClock.now - $0 >= Self.pause }) ?? true {
                outdated += Self.outdated(&state, but: place)
                Self.dropIdle(&state, but: place)
            }
            let pool =
                state.pools[key]
                ?? ServingPool(
                    program, limits: limits, seats: known.seats, launcher: launcher, scratchFolders: scratchFolders)
            state.pools[key] = pool
            return (pool, outdated)
        }
        for pool in outdated { pool.replace() }
        return pool
    }

    /// Replaces the processes of all plugins whose files have changed or gone.
    func retireOutdated() {
        let pools = state.withLock { state in
            Self.dropIdle(&state, but: nil)
            return Self.outdated(&state, but: nil)
        }
        for pool in pools { pool.replace() }
    }

    /// How many pools there are.
    var count: Int { state.withLock { $0.pools.count } }

    /// Forgets pools that have nothing to do: rules that have changed may never ask for them again.
    private static func dropIdle(_ state: inout State, but place: PathBytes?) {
        for (path, known) in state.places where path != place {
            let idle = known.keys.filter { state.pools[$0]?.drop() ?? true }
            for key in idle { state.pools[key] = nil }
            state.places[path]?.keys.subtract(idle)
            if idle.count == known.keys.count { state.places[path] = nil }
        }
    }

    /// The pools of plugins whose files are not what they were when somebody looked last.
    private static func outdated(_ state: inout State, but place: PathBytes?) -> [ServingPool] {
        state.looked = .now
        var outdated: [ServingPool] = []
        for (path, known) in state.places where path != place {
            let stamps = known.files.map { FileStamp($0) }
            guard stamps != known.stamps else { continue }
            state.places[path]?.stamps = stamps
            outdated += known.keys.compactMap { state.pools[$0] }
        }
        return outdated
    }

    /// Ends all processes, and waits until they have ended; nothing is served any more.
    ///
    /// - Parameter isAtOnce: Whether they are sent SIGTERM, and not the end of their input first.
    package func close(isAtOnce: Bool) {
        let pools = state.withLock { state in
            state.isClosed = true
            return Array(state.pools.values)
        }
        for pool in pools { pool.beginToClose(isAtOnce: isAtOnce) }
        for pool in pools { pool.close(isAtOnce: isAtOnce) }
    }
}

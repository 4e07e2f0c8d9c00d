package import ActionAPI
@preconcurrency import Dispatch
import Logging
package import Programs
import Synchronization
package import System

/// A serving plugin in one environment: its processes, and the requests that wait for answers.
package final class ServedPlugin: Sendable {
    private struct State: Sendable {
        var slots: ServeSlots
        /// The processes that have started.
        var running: [Int: ServingProcess] = [:]
        /// The files of the plugin, and their stamps when they were last checked.
        var files: [PathBytes] = []
        var stamps: [Snapshot?]?
        /// The directory that contains the scratch directories of its processes.
        var directory: PathBytes?
    }

    let launcher: ProcessLauncher
    let scratchDirectories: ScratchDirectories
    private let state: Mutex<State>
    /// The group of all processes.
    private let processes = DispatchGroup()

    init(parallel: Int, limits: ServeLimits, launcher: ProcessLauncher, scratchDirectories: ScratchDirectories) {
        self.launcher = launcher
        self.scratchDirectories = scratchDirectories
        state = Mutex(State(slots: ServeSlots(parallel: parallel, limits: limits)))
    }

    /// Sends a request to a process.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - stop: Cancels it when raised.
    ///   - isRetry: Whether a process has died with it.
    ///   - whenAnswered: Called with the reply on any thread; must not block.
    package func submit(
        _ request: ServeRequest, stop: StopSignal, isRetry: Bool,
        whenAnswered: @escaping @Sendable (ServeRequest.Reply) -> Void
    ) {
        let observation = stop.observe { [weak self, weak request] in
            // The signal is raised by threads that may hold the lock.
            EventLoop.shared.call { [weak self, weak request] in
                if let request { self?.change { $0.cancel(request, at: $1) } }
            }
        }
        request.whenAnswered { reply in
            stop.forget(observation)
            whenAnswered(reply)
        }
        change { $0.submit(request, isRetry: isRetry, at: $1) }
        // It may have been raised before the request could be found.
        if stop.isRaised { change { $0.cancel(request, at: $1) } }
    }

    /// Replaces all processes if a file has changed or gone, or their scratch directories have gone.
    ///
    /// - Parameters:
    ///   - files: The files of the plugin; nil for the same as before.
    ///   - parallel: The maximum number of processes at once; nil for the same as before.
    func check(files: [PathBytes]? = nil, parallel: Int? = nil) {
        let files = files ?? state.withLock { $0.files }
        let stamps = files.map { KernelFileSystem().stat(following: $0).snapshot }
        let directory = scratchDirectories.instance
        let isOutdated = state.withLock { state in
            defer { (state.files, state.stamps, state.directory) = (files, stamps, directory) }
            if let parallel { state.slots.parallel = max(parallel, 1) }
            return state.stamps != nil && (state.stamps != stamps || state.directory != directory)
        }
        if isOutdated { change { $0.replace(at: $1) } }
    }

    /// Starts to stop all processes, and does not wait for their exit.
    func close(isAtOnce: Bool) { change { $0.close(isAtOnce: isAtOnce, at: $1) } }

    /// Waits until all processes have exited.
    func wait() { processes.wait() }

    /// The number of processes.
    var count: Int { state.withLock { $0.slots.sessions.count } }

    /// Changes the slots, and performs what follows from that.
    ///
    /// - Parameters:
    ///   - process: The process that calls this, and calls ``ServeSlots/turn(of:at:)`` itself.
    ///   - body: The change, with the current time.
    /// - Returns: The result of the change.
    func change<Result: Sendable>(
        by process: Int? = nil, _ body: (inout ServeSlots, ContinuousClock.Instant) -> Result
    ) -> Result {
        let (result, others) = state.withLock { state in
            let now = ContinuousClock.now
            let result = body(&state.slots, now)
            while case let starts = state.slots.takeStarts(), !starts.isEmpty {
                for (number, request) in starts { start(number, for: request, &state, at: now) }
            }
            let busy = state.slots.sessions.filter { $0.key != process && $0.value.hasCommands }
            return (result, busy.keys.compactMap { state.running[$0] })
        }
        for other in others { EventLoop.shared.call { other.handle(nil) } }
        return result
    }

    /// Has a process that has started get commands.
    func add(_ process: ServingProcess, _ number: Int) {
        state.withLock { $0.running[number] = process }
        process.handle(nil)
    }

    /// Handles the exit of a process, or that it cannot be started; logs why it died, unless its exit was expected.
    func end(
        _ process: Int, of program: ServedProgram, _ termination: ProgramResult.Termination, lastLine: String?,
        _ logger: Logger
    ) {
        state.withLock { $0.running[process] = nil }
        let reason = change(by: process) { $0.end(process, termination, lastLine: lastLine, at: $1) }
        if let reason { logger.warning("\(program.title) \(reason)") }
        processes.leave()
    }

    private func start(
        _ number: Int, for request: ServeRequest, _ state: inout State, at now: ContinuousClock.Instant
    ) {
        processes.enter()
        // Blocks until a launcher has started.
        let thread = WorkerThread(name: "alight-serve") { [self] in
            ServingProcess.start(number, of: self, for: request)
        }
        if let thread { return thread.detach() }
        processes.leave()
        _ = state.slots.end(number, .notLaunched("no thread can be started"), lastLine: nil, at: now)
    }
}

/// All serving plugins.
package final class ServedPlugins: Sendable {
    /// All that the requests of one process have in common.
    private struct Key: Hashable {
        let location: PathBytes
        let plan: [UInt8]
    }

    private struct State: Sendable {
        var plugins: [Key: ServedPlugin] = [:]
        var isClosed = false
        /// The time at which all plugins were last checked.
        var checked: ContinuousClock.Instant?
    }

    /// The interval at which plugins without requests are checked while others get some.
    private static let pause = Duration.seconds(1)

    private let launcher: ProcessLauncher
    private let scratchDirectories: ScratchDirectories
    private let limits: ServeLimits
    private let state = Mutex(State())

    package init(launcher: ProcessLauncher, scratchDirectories: ScratchDirectories, limits: ServeLimits) {
        self.launcher = launcher
        self.scratchDirectories = scratchDirectories
        self.limits = limits
    }

    /// Finds a plugin, and replaces its processes if one of its files has changed.
    ///
    /// - Parameters:
    ///   - location: The location of the plugin.
    ///   - plan: The bytes of the plan of its processes: only requests with equal plans share them.
    ///   - files: The files of the plugin.
    ///   - parallel: The maximum number of processes at once.
    /// - Returns: The plugin; nil when closed.
    package func plugin(
        at location: PathBytes, running plan: [UInt8], files: [PathBytes], parallel: Int
    ) -> ServedPlugin? {
        let key = Key(location: location, plan: plan)
        let (plugin, others) = state.withLock { state -> (ServedPlugin?, [ServedPlugin]) in
            guard !state.isClosed else { return (nil, []) }
            if state.plugins.isEmpty { scratchDirectories.removeAbandoned() }
            let plugin =
                state.plugins[key]
                ?? ServedPlugin(
                    parallel: parallel, limits: limits, launcher: launcher, scratchDirectories: scratchDirectories)
            state.plugins[key] = plugin
            guard state.checked.map({ ContinuousClock.now - $0 >= Self.pause }) ?? true else { return (plugin, []) }
            state.checked = .now
            return (plugin, state.plugins.values.filter { $0 !== plugin })
        }
        for other in others { other.check() }
        plugin?.check(files: files, parallel: parallel)
        return plugin
    }

    /// Replaces the processes of all plugins whose files have changed or gone.
    package func retireOutdated() { for plugin in state.withLock({ $0.plugins.values }) { plugin.check() } }

    /// The number of processes.
    package var count: Int { state.withLock { $0.plugins.values.reduce(0) { $0 + $1.count } } }

    /// Stops all processes, and waits until they have exited; nothing is served any more.
    ///
    /// - Parameter isAtOnce: Whether they are sent SIGTERM, and not first end-of-file on their input.
    package func close(isAtOnce: Bool) {
        let plugins = state.withLock { state in
            state.isClosed = true
            return Array(state.plugins.values)
        }
        for plugin in plugins { plugin.close(isAtOnce: isAtOnce) }
        for plugin in plugins { plugin.wait() }
    }
}

package import ActionAPI
import CAlightLinux
import Glibc
package import System

/// Runs programs, any number at once.
///
/// Every program is started by an `alight-launch` process, which gives it a session of its own and leaves none of its
/// processes behind. `Foundation.Process` starts only the ``Spawner``, which forks the others. A launcher runs one
/// program after another, because two processes for each program cost twice as much as one.
package final class ProcessLauncher: Sendable {
    private let spawner: Spawner
    private let pool = LauncherPool()

    /// - Parameter launcher: The absolute path of `alight-launch`.
    package init(launcher: PathBytes) {
        spawner = Spawner(launcher)
        _ = (Self.descriptorLimit, Self.null)
        _ = EventLoop.shared
    }

    /// Stops the idle launchers, and the processes that fork them.
    package func endIdle() {
        pool.close()
        spawner.end()
    }

    /// Finds `alight-launch`: next to this program, or else in `../libexec/alight` relative to its directory.
    package static func find() -> PathBytes? {
        guard let directory = programDirectory else { return nil }
        let locations = [
            directory.appending("alight-launch"), directory.parent.appending("libexec/alight/alight-launch"),
        ]
        return locations.first { $0.withCString { access($0, X_OK) } == 0 }
    }

    /// The directory of this program's executable; nil when `/proc` does not show it.
    package static var programDirectory: PathBytes? { KernelFileSystem().target(of: "/proc/self/exe")?.parent }

    /// Runs a program, and waits until it and all its descendants have exited; holds no thread meanwhile.
    ///
    /// - Parameters:
    ///   - command: The program to run.
    ///   - stop: Terminates the program when raised.
    ///   - mayStart: Called before the program starts; returns false to cancel the start.
    ///   - report: Receives the lines of its log as they arrive, up to ``OutputLines/limit``; must not block.
    ///   - lateInput: Returns its standard input, while it is already starting; nil for that of the command.
    /// - Returns: How the program terminated, including that it could not be started.
    package func run(
        _ command: Command, stop: StopSignal, mayStart: () async -> Bool = { true },
        report: @escaping @Sendable (ArraySlice<UInt8>) -> Void = { _ in }, lateInput: (() -> [UInt8])? = nil
    ) async -> ProgramResult {
        let start = ContinuousClock.now
        let launched: Result<LaunchedProgram, LaunchFailure>
        do throws(LaunchFailure) {
            launched = .success(try await launch(command, mayStart))
        } catch {
            launched = .failure(error)
        }
        return await withUnsafeContinuation { continuation in
            serve(launched, command, since: start, stop, report, lateInput) { continuation.resume(returning: $0) }
        }
    }

    /// Everything for the start is released before the program runs.
    private func launch(
        _ command: Command, _ mayStart: () async -> Bool
    ) async throws(LaunchFailure) -> LaunchedProgram {
        let prepared = try prepare(command, converses: false)
        if await mayStart() { return try start(prepared) }
        pool.give(prepared.launcher)
        throw LaunchFailure("Alight stops")
    }

    /// Runs a program, and blocks until it and all its descendants have exited.
    package func runBlocking(
        _ command: Command, stop: StopSignal = StopSignal(),
        report: @escaping @Sendable (ArraySlice<UInt8>) -> Void = { _ in }, lateInput: (() -> [UInt8])? = nil
    ) -> ProgramResult {
        let start = ContinuousClock.now
        let launched = Result { () throws(LaunchFailure) in try self.start(command, converses: false) }
        let result = Request<ProgramResult>()
        serve(launched, command, since: start, stop, report, lateInput, whenEnded: result.end)
        return result.wait() ?? ProgramResult(termination: .stopped)
    }

    @inline(never) private func serve(
        _ launched: Result<LaunchedProgram, LaunchFailure>, _ command: Command, since start: ContinuousClock.Instant,
        _ stop: StopSignal, _ report: @escaping @Sendable (ArraySlice<UInt8>) -> Void, _ lateInput: (() -> [UInt8])?,
        whenEnded: @escaping @Sendable (ProgramResult) -> Void
    ) {
        switch launched {
        case .success(let program):
            let input = lateInput?() ?? command.input
            RunningProgram(command, program, input: input, since: start, report: report, whenEnded: whenEnded)
                .begin(stop: stop)
        case .failure(let failure): whenEnded(ProgramResult(termination: failure.termination))
        }
    }

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - command: The program to run; the caller handles its input, output and timeout.
    ///   - converses: Whether the caller converses with the program: its output pipes reach end-of-file when the
    ///     program closes them. Otherwise they do when the program and all its descendants have exited.
    /// - Returns: The running program; this process's ends of its pipes do not block.
    /// - Throws: The reason why it could not be started. Errors found by the launcher are reported as the program's
    ///   termination instead.
    package func start(_ command: Command, converses: Bool = true) throws(LaunchFailure) -> LaunchedProgram {
        try start(prepare(command, converses: converses))
    }

    /// Everything that the start of a program needs.
    private struct Prepared {
        var plan: [UInt8]
        var directory: OpenFile
        var ruleset: OpenFile?
        var launcher: LauncherProcess
        /// Whether the launcher has been idle, and may have been killed or stopped meanwhile.
        var wasIdle: Bool
        /// Nil for an input of nothing.
        var input: Pipe?
        var output: Pipe
        var error: Pipe
    }

    private func prepare(_ command: Command, converses: Bool) throws(LaunchFailure) -> Prepared {
        let limit = Self.descriptorLimit
        let ruleset = try retrying { () throws(LaunchFailure) in try command.confinement.makeRuleset() }
        let plan = LaunchPlan(command, descriptorLimit: limit, showsClosing: converses, hasRuleset: ruleset != nil)
        guard let plan else { throw .containsNUL }
        guard plan.bytes.count <= LaunchPlan.most else {
            throw LaunchFailure("its arguments and its environment are too long", isPermanent: true)
        }
        let directory = try retrying { () throws(LaunchFailure) in try Self.open(command.directory) }
        // Before the pipes: many threads may wait here for their launcher, and the pipes need six descriptors.
        let idle = pool.take()
        let launcher = if let idle { idle } else { try retrying(spawner.makeLauncher) }
        do {
            let (input, output, error) = try retrying { () throws(LaunchFailure) in
                (command.hasInput ? try Pipe() : nil, try Pipe(), try Pipe())
            }
            return Prepared(
                plan: plan.bytes, directory: directory, ruleset: ruleset, launcher: launcher, wasIdle: idle != nil,
                input: input, output: output, error: error)
        } catch {
            pool.give(launcher)
            throw error
        }
    }

    private func start(_ prepared: Prepared) throws(LaunchFailure) -> LaunchedProgram {
        let (input, output, error) = (prepared.input, prepared.output, prepared.error)
        // The program's ends, of which the launcher has copies by then.
        defer {
            input?.reading.close()
            output.writing.close()
            error.writing.close()
        }
        var descriptors = [
            input?.reading.raw ?? Self.null, output.writing.raw, error.writing.raw, prepared.directory.descriptor,
        ]
        if let ruleset = prepared.ruleset { descriptors.append(ruleset.descriptor) }
        defer { withExtendedLifetime((prepared.directory, prepared.ruleset)) {} }
        var launcher = prepared.launcher
        var problem = launcher.run(prepared.plan, with: descriptors)
        if problem != 0, prepared.wasIdle {
            // It has not read the whole plan, so nothing was run.
            launcher.kill()
            launcher = try retrying(spawner.makeLauncher)
            problem = launcher.run(prepared.plan, with: descriptors)
        }
        guard problem == 0 else {
            throw LaunchFailure("alight-launch does not accept a plan: \(SystemError(errno: problem))")
        }
        // The launcher may have been woken on this processor, and have to wait for it.
        sched_yield()
        // The program is already starting. It can open these ends of its pipes through /proc, and fill and empty them.
        let ends = [input?.writing ?? OwnedDescriptor(-1), output.reading, error.reading]
        for end in ends { end.setNonBlocking() }
        return LaunchedProgram(launcher, of: pool, input: ends[0], output: ends[1], error: ends[2])
    }

    /// Retries an operation that needs descriptors a few times, since other threads may soon close some.
    private func retrying<Value>(_ body: () throws(LaunchFailure) -> Value) throws(LaunchFailure) -> Value {
        for _ in 0..<Self.mostTries {
            do throws(LaunchFailure) {
                return try body()
            } catch {
                guard error.isOfDescriptors else { throw error }
                // The idle launchers are needed least.
                pool.close()
                usleep(10_000)
            }
        }
        return try body()
    }

    private static let mostTries = 20

    private static func open(_ directory: ProgramPath) throws(LaunchFailure) -> OpenFile {
        do throws(SystemError) {
            return try directory.openDirectory()
        } catch {
            throw directory.failure(error, to: "enter the directory '\(directory.path)'")
        }
    }

    // MARK: - Preparations

    /// The soft descriptor limit that Alight was started with, which is restored for programs.
    ///
    /// The first access raises the limit of this process as far as possible, since a running program takes four
    /// descriptors, and makes a write to a closed pipe an error. SIGPIPE gets a handler and is not ignored, because
    /// execve(2) would pass that on.
    private static let descriptorLimit: UInt64 = {
        signal(SIGPIPE) { _ in }
        var former: UInt64 = 0
        _ = cal_raise_descriptor_limit(&former)
        return former
    }()

    /// The input of programs that have none.
    private static let null = Glibc.open("/dev/null", O_RDONLY | O_CLOEXEC)

    /// A pipe whose ends are closed automatically and are never inherited by accident.
    private struct Pipe {
        let reading: OwnedDescriptor
        let writing: OwnedDescriptor

        init() throws(LaunchFailure) {
            var ends: [Int32] = [-1, -1]
            let error = cal_pipe(&ends)
            guard error == 0 else {
                throw LaunchFailure("no pipe: \(SystemError(errno: error))", isOfDescriptors: error == EMFILE)
            }
            reading = OwnedDescriptor(ends[0])
            writing = OwnedDescriptor(ends[1])
        }
    }
}

/// The reason why `alight-launch` or a program could not be started.
package struct LaunchFailure: Error {
    package var reason: String
    /// Whether it cannot be started later either.
    private var isPermanent: Bool
    /// Whether the cause is a lack of descriptors.
    var isOfDescriptors: Bool
    /// Whether the process that forks launchers has exited or does not respond.
    var isOfSpawner: Bool

    /// The termination of the program that was to be started.
    package var termination: ProgramResult.Termination { isPermanent ? .couldNotStart(reason) : .notLaunched(reason) }

    package static let containsNUL = LaunchFailure(
        "an argument or an environment variable contains a NUL byte", isPermanent: true)

    init(
        _ reason: String, isPermanent: Bool = false, isOfDescriptors: Bool = false, isOfSpawner: Bool = false
    ) {
        self.reason = reason
        self.isPermanent = isPermanent
        self.isOfDescriptors = isOfDescriptors
        self.isOfSpawner = isOfSpawner
    }

    /// - Parameters:
    ///   - reason: A sentence without a full stop.
    ///   - errno: The error of opening or creating something for the program.
    init(_ reason: String, errno: Int32) {
        let mayPass = [EAGAIN, EINTR, ENOMEM, EMFILE, ENFILE, EIO].contains(errno)
        self.init(reason, isPermanent: !mayPass, isOfDescriptors: errno == EMFILE)
    }
}

extension ProgramPath {
    /// Returns the failure of a program whose path could not be opened.
    func failure(_ error: SystemError, to purpose: String) -> LaunchFailure {
        LaunchFailure("cannot \(purpose): \(reason(error.errno))", errno: error.errno)
    }
}

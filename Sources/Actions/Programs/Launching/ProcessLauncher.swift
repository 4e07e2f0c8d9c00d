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
    ///   - report: Receives the lines of its log as they arrive, up to ``OutputLines/limit``; must not block.
    /// - Returns: How the program terminated, including that it could not be started.
    package func run(
        _ command: Command, stop: StopSignal, report: @escaping @Sendable (ArraySlice<UInt8>) -> Void = { _ in }
    ) async -> ProgramResult {
        switch prepare(command, stop: stop, report: report) {
        case .success(let program): await program.run()
        case .failure(let failure): ProgramResult(termination: failure.termination)
        }
    }

    /// Runs a program, and blocks until it and all its descendants have exited.
    package func runBlocking(
        _ command: Command, stop: StopSignal = StopSignal(),
        report: @escaping @Sendable (ArraySlice<UInt8>) -> Void = { _ in }
    ) -> ProgramResult {
        switch prepare(command, stop: stop, report: report) {
        case .success(let program): program.runBlocking()
        case .failure(let failure): ProgramResult(termination: failure.termination)
        }
    }

    /// Prepares a program, whose timeout counts from here; the parameters are those of ``run(_:stop:report:)``.
    package func prepare(
        _ command: Command, stop: StopSignal, report: @escaping @Sendable (ArraySlice<UInt8>) -> Void
    ) -> Result<RunningProgram, LaunchFailure> {
        let start = ContinuousClock.now
        return Result { () throws(LaunchFailure) in
            RunningProgram(
                command, try prepare(command, converses: false), since: start, stop: stop, report: report)
        }
    }

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - command: The program to run; the caller handles its input, output and timeout.
    ///   - converses: Whether the caller converses with the program: its output pipes reach end-of-file when the
    ///     program closes them. Otherwise they need not.
    /// - Returns: The running program; this process's ends of its pipes do not block.
    /// - Throws: The reason why it could not be started. Errors found by the launcher are reported as the program's
    ///   termination instead.
    package func start(_ command: Command, converses: Bool = true) throws(LaunchFailure) -> LaunchedProgram {
        let program = try prepare(command, converses: converses)
        _ = try program.start(waits: true)
        return program
    }

    private func prepare(_ command: Command, converses: Bool) throws(LaunchFailure) -> LaunchedProgram {
        let ruleset = try retrying { () throws(LaunchFailure) in try command.confinement.makeRuleset() }
        let plan = LaunchPlan(command, descriptorLimit: Self.descriptorLimit, hasRuleset: ruleset != nil)
        guard let plan else { throw .containsNUL }
        guard plan.bytes.count <= LaunchPlan.most else {
            throw LaunchFailure(reason: "its arguments and its environment are too long", isPermanent: true)
        }
        let directory = try retrying { () throws(LaunchFailure) in try Self.open(command.directory) }
        // Before the pipes: many threads may wait here for their launcher, and the pipes need six descriptors.
        let idle = pool.take()
        let launcher = if let idle { idle } else { try makeLauncher() }
        do {
            let (input, output, error) = try retrying { () throws(LaunchFailure) in
                (command.hasInput ? try Self.pipe(isInput: true) : nil, try Self.pipe(), try Self.pipe())
            }
            let files = [input?.theirs ?? Self.null, output.theirs, error.theirs, directory, ruleset]
            let start = LaunchedProgram.Start(
                plan: plan.bytes, files: files.compactMap(\.self), showsClosing: converses, wasIdle: idle != nil)
            return LaunchedProgram(
                launcher, of: self, input: input?.ours ?? OwnedDescriptor(-1), output: output.ours, error: error.ours,
                start: start)
        } catch {
            pool.give(launcher)
            throw error
        }
    }

    /// Starts another launcher; blocks for as long as that takes.
    func makeLauncher() throws(LaunchFailure) -> LauncherProcess { try retrying(spawner.makeLauncher) }

    /// Takes a launcher back, which is free for another program.
    func give(_ launcher: LauncherProcess) { pool.give(launcher) }

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
    /// The first access raises the limit of this process as far as possible, since a running program takes up
    /// to six descriptors, and makes a write to a closed pipe an error. SIGPIPE gets a handler and is not ignored, because
    /// execve(2) would pass that on.
    private static let descriptorLimit: UInt64 = {
        signal(SIGPIPE) { _ in }
        var former: UInt64 = 0
        _ = cal_raise_descriptor_limit(&former)
        return former
    }()

    /// The input of programs that have none.
    private static let null = OpenFile(Glibc.open("/dev/null", O_RDONLY | O_CLOEXEC))

    /// Creates a pipe whose ends are closed automatically and are never inherited by accident.
    ///
    /// - Returns: The end of the program, and that of this process, which does not block: the program can open it through
    ///   /proc, and fill and empty the pipe.
    private static func pipe(
        isInput: Bool = false
    ) throws(LaunchFailure) -> (theirs: OpenFile, ours: OwnedDescriptor) {
        var ends: [Int32] = [-1, -1]
        let error = cal_pipe(&ends)
        guard error == 0 else {
            throw LaunchFailure(reason: "no pipe: \(SystemError(errno: error))", isOfDescriptors: error == EMFILE)
        }
        let ours = OwnedDescriptor(ends[isInput ? 1 : 0])
        ours.setNonBlocking()
        return (OpenFile(ends[isInput ? 0 : 1]), ours)
    }
}

/// The reason why `alight-launch` or a program could not be started.
package struct LaunchFailure: Error {
    package let reason: String
    /// Whether it cannot be started later either.
    var isPermanent = false
    /// Whether the cause is a lack of descriptors.
    var isOfDescriptors = false
    /// Whether the process that forks launchers has exited or does not respond.
    var isOfSpawner = false

    /// The termination of the program that was to be started.
    package var termination: ProgramResult.Termination { isPermanent ? .couldNotStart(reason) : .notLaunched(reason) }

    package static let containsNUL = LaunchFailure(
        reason: "an argument or an environment variable contains a NUL byte", isPermanent: true)
}

extension LaunchFailure {
    /// - Parameters:
    ///   - reason: A sentence without a full stop.
    ///   - errno: The error of opening or creating something for the program.
    init(reason: String, errno: Int32) {
        let mayPass = [EAGAIN, EINTR, ENOMEM, EMFILE, ENFILE, EIO].contains(errno)
        self.init(reason: reason, isPermanent: !mayPass, isOfDescriptors: errno == EMFILE)
    }
}

extension ProgramPath {
    /// Returns the failure of a program whose path could not be opened.
    func failure(_ error: SystemError, to purpose: String) -> LaunchFailure {
        LaunchFailure(reason: "cannot \(purpose): \(reason(error.errno))", errno: error.errno)
    }
}

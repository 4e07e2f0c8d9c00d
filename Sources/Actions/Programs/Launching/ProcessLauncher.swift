package import ActionAPI
import CAlightLinux
import Foundation
import Glibc
package import System

/// Runs programs: one at a time on each calling thread, any number of threads at once.
///
/// Every program is started by an `alight-launch` process, which gives it a session of its own and leaves none of its
/// processes behind. `Foundation.Process` starts the launcher, in the one way that was found to lose neither
/// descriptors nor signals. A launcher runs one program after another, because two processes for each program cost
/// twice as much as one.
package final class ProcessLauncher: Sendable {
    private let launcher: PathBytes
    private let pool = LauncherPool()

    /// - Parameter launcher: The absolute path of `alight-launch`.
    package init(launcher: PathBytes) {
        self.launcher = launcher
        _ = Self.descriptorLimit
    }

    /// Stops the idle launchers.
    package func endIdle() { pool.close() }

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

    /// Runs a program, and waits until it and all its descendants have exited.
    ///
    /// Blocks.
    ///
    /// - Parameters:
    ///   - command: The program to run.
    ///   - stop: Terminates the program when raised.
    ///   - report: Receives the lines of its log as they arrive, on the calling thread, up to ``OutputLines/limit``.
    ///   - lateInput: Returns its standard input, while it is already starting; nil for that of the command.
    /// - Returns: How the program terminated, including that it could not be started.
    package func run(
        _ command: Command, stop: StopSignal, report: (ArraySlice<UInt8>) -> Void = { _ in },
        lateInput: (() -> [UInt8])? = nil
    ) -> ProgramResult {
        let start = ContinuousClock.now
        do throws(LaunchFailure) {
            let program = try self.start(command, converses: false)
            let input = lateInput?() ?? command.input
            return RunningProgram(command, program, input: input, since: start).wait(stop: stop, report: report)
        } catch {
            return ProgramResult(termination: error.termination)
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
        var launcher = if let idle { idle } else { try retrying(startLauncher) }
        let input: Pipe, output: Pipe, error: Pipe
        do {
            (input, output, error) = try retrying { () throws(LaunchFailure) in
                try Self.pipes(hasInput: command.hasInput)
            }
        } catch {
            pool.give(launcher)
            throw error
        }
        // The program's ends, of which the launcher has copies by then.
        defer {
            input.reading.close()
            output.writing.close()
            error.writing.close()
        }
        var descriptors = [input.reading.raw, output.writing.raw, error.writing.raw, directory.descriptor]
        if let ruleset { descriptors.append(ruleset.descriptor) }
        defer { withExtendedLifetime((directory, ruleset)) {} }
        guard command.mayStart() else {
            pool.give(launcher)
            throw LaunchFailure("Alight stops")
        }
        var problem = launcher.run(plan.bytes, with: descriptors)
        if problem != 0, idle != nil {
            // An idle launcher may have been killed meanwhile, or stopped. It has not read the whole plan, so nothing
            // was run.
            launcher.kill()
            launcher = try retrying(startLauncher)
            problem = launcher.run(plan.bytes, with: descriptors)
        }
        guard problem == 0 else {
            throw LaunchFailure("alight-launch does not accept a plan: \(SystemError(errno: problem))")
        }
        // The launcher may have been woken on this processor, and have to wait for it.
        sched_yield()
        // The program is already starting. It can open these ends of its pipes through /proc, and fill and empty them.
        for end in [input.writing, output.reading, error.reading] { end.setNonBlocking() }
        return LaunchedProgram(launcher, of: pool, input: input.writing, output: output.reading, error: error.reading)
    }

    private func startLauncher() throws(LaunchFailure) -> LauncherProcess { try StarterThread.start(launcher) }

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

    private static func pipes(hasInput: Bool) throws(LaunchFailure) -> (Pipe, Pipe, Pipe) {
        LauncherProcess.opening.lock()
        defer { LauncherProcess.opening.unlock() }
        return (hasInput ? try Pipe() : try Pipe(reading: "/dev/null"), try Pipe(), try Pipe())
    }

    // MARK: - Preparations

    /// The soft descriptor limit that Alight was started with, which is restored for programs.
    ///
    /// The first access lowers the limit of this process to 1024, above which `Process.run()` was seen to crash, and
    /// makes a write to a closed pipe an error. SIGPIPE gets a handler and is not ignored, because execve(2) would pass
    /// that on.
    private static let descriptorLimit: UInt64 = {
        signal(SIGPIPE) { _ in }
        var limit = rlimit()
        let isKnown = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        _ = cal_limit_descriptors(1024)
        return isKnown ? UInt64(limit.rlim_cur) : 0
    }()

    /// A pipe whose ends are closed automatically and are never inherited by accident.
    private struct Pipe {
        let reading: OwnedDescriptor
        let writing: OwnedDescriptor

        /// A file in place of a pipe: its other end is closed.
        init(reading path: String) throws(LaunchFailure) {
            let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else {
                throw LaunchFailure("cannot open '\(path)': \(SystemError(errno: errno))", errno: errno)
            }
            reading = OwnedDescriptor(descriptor)
            writing = OwnedDescriptor(-1)
        }

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

    /// The termination of the program that was to be started.
    package var termination: ProgramResult.Termination { isPermanent ? .couldNotStart(reason) : .notLaunched(reason) }

    package static let containsNUL = LaunchFailure(
        "an argument or an environment variable contains a NUL byte", isPermanent: true)

    init(_ reason: String, isPermanent: Bool = false, isOfDescriptors: Bool = false) {
        self.reason = reason
        self.isPermanent = isPermanent
        self.isOfDescriptors = isOfDescriptors
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

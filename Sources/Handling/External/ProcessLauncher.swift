import CAlightLinux
package import FileEvents
import Foundation
import Glibc
import Rules

/// Runs programs: one at a time on each calling thread, any number of threads at once.
///
/// Every program is started by `alight-launch`, which gives it a session of its
/// own and leaves nothing of it behind; `Foundation.Process` starts that, in the
/// one way that was found to lose neither descriptors nor signals.
package final class ProcessLauncher: Sendable {
    private let launcher: PathBytes

    /// - Parameter launcher: The absolute path of `alight-launch`.
    package init(launcher: PathBytes) {
        self.launcher = launcher
        _ = Self.descriptorLimit
    }

    /// Finds `alight-launch`: beside this program, else in `../libexec/alight` from there.
    package static func find() -> PathBytes? {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        guard count > 0 else { return nil }
        let folder = PathBytes(buffer[..<count].map { UInt8(bitPattern: $0) }).parent
        let places = [
            folder.appending("alight-launch"), folder.parent.appending("libexec/alight/alight-launch"),
        ]
        return places.first { $0.withCString { access($0, X_OK) } == 0 }
    }

    /// Runs a program to its end, and to the end of everything that descends from it.
    ///
    /// Blocks. The calling thread must be one that outlives the program, as any
    /// blocked thread does: the kernel takes its end for the end of Alight.
    ///
    /// - Parameters:
    ///   - command: What to run.
    ///   - stop: Ends the program when raised.
    ///   - report: Takes log lines and progress as they come, on the calling thread.
    /// - Returns: How it ended. A program that can't be started is such an ending, too.
    package func run(
        _ command: Command, stop: StopSignal, report: (ProgramReport) -> Void = { _ in }
    ) -> Ended {
        let start = ContinuousClock.now
        do throws(LaunchFailure) {
            let (process, header) = try self.start(command)
            let running = RunningProgram(command, process, header: header, since: start)
            return running.wait(stop: stop, report: report)
        } catch {
            return Ended(way: error.isForGood ? .couldNotStart(error.reason) : .notLaunched(error.reason))
        }
    }

    /// Starts `alight-launch` for a program, on a thread that has to outlive it.
    ///
    /// - Parameter command: What to run; its input, output and time-out are the caller's to see to.
    /// - Returns: The launcher, and what has to be written to it before the program's own input.
    /// - Throws: Why it could not be started.
    func start(_ command: Command) throws(LaunchFailure) -> (process: SpawnedProcess, header: [UInt8]) {
        guard let header = LaunchHeader(command, descriptorLimit: Self.descriptorLimit) else {
            throw .holdsNUL
        }
        return (try spawn(), header.bytes)
    }

    // MARK: - Preparations

    /// The soft limit of descriptors that Alight was started with, which programs get back.
    ///
    /// Taking it lowers our own to 1024, above which `Process.run()` was seen to
    /// crash, and makes a write to a closed pipe an error. SIGPIPE gets a handler and
    /// is not ignored: execve(2) would hand that on.
    private static let descriptorLimit: UInt64 = {
        signal(SIGPIPE) { _ in }
        var limit = rlimit()
        let isKnown = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        _ = cal_limit_descriptors(1024)
        return isKnown ? UInt64(limit.rlim_cur) : 0
    }()

    /// Held while pipes are made and a process starts, so that no process inherits another one's pipes.
    private static let spawning = NSLock()

    // MARK: - The start

    private func spawn() throws(LaunchFailure) -> SpawnedProcess {
        guard let path = launcher.text else { throw LaunchFailure("the path of alight-launch is not UTF-8") }
        guard launcher.withCString({ access($0, X_OK) }) == 0 else {
            throw LaunchFailure("'\(launcher)' can't be run: \(String(cString: strerror(errno)))")
        }
        Self.spawning.lock()
        defer { Self.spawning.unlock() }
        let input = try Pipe()
        let output = try Pipe()
        let error = try Pipe()
        // The program's ends. Closed here and not by their last reference, which may go before `run()`.
        defer {
            input.reading.close()
            output.writing.close()
            error.writing.close()
        }
        try Self.checkSpareDescriptors()
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = []
        process.environment = [:]
        process.currentDirectoryURL = URL(fileURLWithPath: "/")
        process.standardInput = FileHandle(fileDescriptor: input.reading.raw, closeOnDealloc: false)
        process.standardOutput = FileHandle(fileDescriptor: output.writing.raw, closeOnDealloc: false)
        process.standardError = FileHandle(fileDescriptor: error.writing.raw, closeOnDealloc: false)
        let end = ProcessEnd()
        process.terminationHandler = { process in
            end.set(status: process.terminationStatus, isSignal: process.terminationReason == .uncaughtSignal)
        }
        // The signal mask stays as it is: a SIGTERM that finds one thread of Alight open for it ends Alight
        // without a word. What is inherited doesn't matter, for the launcher begins with a mask of its own.
        do {
            try process.run()
        } catch {
            throw LaunchFailure("'\(launcher)' can't be run: \(error.localizedDescription)")
        }
        return SpawnedProcess(
            process: process, end: end, input: input.writing, output: output.reading, error: error.reading)
    }

    /// Makes sure that Foundation finds descriptors for its own use.
    ///
    /// `Process.run()` does not look whether its socketpair(2) succeeded: it takes descriptor 0 for it then, and
    /// no program's end is ever noticed again. It needs two; the others are for threads that open something meanwhile.
    private static func checkSpareDescriptors() throws(LaunchFailure) {
        var taken: [OwnedDescriptor] = []
        defer { for descriptor in taken { descriptor.close() } }
        for _ in 0..<24 {
            let eventfd = cal_eventfd()
            guard eventfd >= 0 else { throw LaunchFailure("too few descriptors are left to start a process") }
            taken.append(OwnedDescriptor(eventfd))
        }
    }

    /// A pipe whose ends close themselves and are never inherited by accident.
    private struct Pipe {
        let reading: OwnedDescriptor
        let writing: OwnedDescriptor

        init() throws(LaunchFailure) {
            var ends: [Int32] = [-1, -1]
            let error = cal_pipe(&ends)
            guard error == 0 else { throw LaunchFailure("no pipe: \(String(cString: strerror(error)))") }
            reading = OwnedDescriptor(ends[0])
            writing = OwnedDescriptor(ends[1])
        }
    }
}

/// Why `alight-launch` could not be started.
struct LaunchFailure: Error {
    var reason: String
    /// Whether it can't be started later either.
    var isForGood: Bool

    static let holdsNUL = LaunchFailure(
        "an argument or a variable of the environment holds a NUL byte", isForGood: true)

    init(_ reason: String, isForGood: Bool = false) {
        self.reason = reason
        self.isForGood = isForGood
    }
}

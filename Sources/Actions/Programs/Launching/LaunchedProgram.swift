import CAlightLinux
import Glibc
package import System

/// A program that `alight-launch` will run or runs, with this process's ends of its pipes; used by one thread at a time.
///
/// If the last reference goes before the program has exited, the program is killed, with all its descendants.
package final class LaunchedProgram {
    package let input: OwnedDescriptor
    package let output: OwnedDescriptor
    package let error: OwnedDescriptor
    private var launcher: LauncherProcess
    private let home: ProcessLauncher
    /// The message to the launcher; nil once it has been sent.
    private var start: Start?
    /// The program's ends of its output pipes, if it does not matter when the program closes them.
    private var held: [OpenFile] = []
    private var message: [UInt8] = []
    /// How the program terminated, once that is known.
    package private(set) var end: ProgramResult.Termination?
    /// The error of the program's file, if it could not be started because of that.
    private(set) var miss: ProgramResult.Miss?
    /// Whether the program runs or has run.
    var hasStarted: Bool { end == nil ? launcher.hasStarted : hadStarted }
    private var hadStarted = false
    /// The time at which an unresponsive launcher is given up, and later killed.
    private var deadline: ContinuousClock.Instant?
    private var isGivenUp = false
    private var isAsked = false

    /// The message that makes a launcher start the program, and the descriptors that it contains.
    struct Start {
        /// The bytes of the ``LaunchPlan``.
        let plan: [UInt8]
        /// Standard input, output and error, the working directory, and the ruleset of a sandbox, if it has one.
        let files: [OpenFile]
        /// Whether the output pipes reach end-of-file as soon as the program has closed them.
        let showsClosing: Bool
        /// Whether the launcher has been idle, and may have been killed or stopped meanwhile.
        let wasIdle: Bool
        /// The errno of the launcher that should have received it.
        var problem: Int32 = 0
    }

    /// - Parameters:
    ///   - launcher: The launcher that will run it.
    ///   - home: Gets the launcher back.
    ///   - input: The writing end of its standard input; closed for a program without.
    ///   - output: The reading end of its standard output.
    ///   - error: The reading end of its standard error.
    ///   - start: What the launcher receives; nil if it has been sent.
    init(
        _ launcher: LauncherProcess, of home: ProcessLauncher, input: OwnedDescriptor, output: OwnedDescriptor,
        error: OwnedDescriptor, start: Start? = nil
    ) {
        self.start = start
        (self.launcher, self.home) = (launcher, home)
        (self.input, self.output, self.error) = (input, output, error)
    }

    /// Starts it, once.
    ///
    /// - Parameter waits: Whether that may block, which it does if the launcher has to be replaced, or the plan is
    ///   large.
    /// - Returns: False if it would block; it must then be called again.
    /// - Throws: The reason why it could not be started.
    func start(waits: Bool) throws(LaunchFailure) -> Bool {
        guard var start else { return true }
        let descriptors = start.files.map(\.descriptor)
        defer { withExtendedLifetime(start) {} }
        if start.problem == 0 {
            guard waits || start.plan.count <= Self.mostAtOnce else { return false }
            start.problem = launcher.run(start.plan, with: descriptors, waits: waits)
        }
        if start.problem != 0 {
            self.start = start
            guard waits else { return false }
            if start.wasIdle || start.problem == EAGAIN {
                // It has not read the whole plan, so nothing was run.
                launcher.kill()
                launcher = try home.makeLauncher()
                start.problem = launcher.run(start.plan, with: descriptors)
            }
        }
        self.start = nil
        guard start.problem == 0 else {
            throw LaunchFailure(reason: "alight-launch does not accept a plan: \(SystemError(errno: start.problem))")
        }
        // Otherwise threads are woken for the ends of the pipes just before the run is over.
        if !start.showsClosing, descriptors[2] < Self.mostHeld { held = Array(start.files[1...2]) }
        deadline = .now + Self.startTimeout
        return true
    }

    /// The descriptor number from which on two descriptors are worth more than two wake-ups.
    private static let mostHeld = 512
    /// The maximum size of a plan that a launcher certainly accepts at once.
    private static let mostAtOnce = 64 << 10

    /// Gives the launcher back, since the program must not be started.
    func cancel() {
        start = nil
        home.give(launcher)
    }

    /// Sets the closure that is called by the loop when ``checkForEnd()`` may have something to read.
    package func whenReady(_ handler: @escaping @Sendable () -> Void) { launcher.whenReady(handler) }

    /// Asks the program to exit, and kills it after the grace period.
    ///
    /// - Parameter grace: The grace period; the launcher must have killed the program five seconds after it.
    package func terminate(grace: Duration) { send(.terminate, within: grace + Self.responseTimeout) }

    /// Kills the program and all its descendants.
    package func kill() { send(.kill, within: Self.responseTimeout) }

    private func send(_ order: LauncherProcess.Order, within limit: Duration) {
        guard end == nil else { return }
        isAsked = true
        isGivenUp = isGivenUp || !launcher.send(order)
        deadline = .now + (isGivenUp ? .zero : limit)
    }

    /// How long a launcher that has something to do may be unresponsive.
    private static let responseTimeout = Duration.seconds(5)
    /// How long a program may take to start, even on a slow file system.
    private static let startTimeout = Duration.seconds(60)

    /// The time at which ``checkLauncher(at:)`` must be called; nil for never.
    package var nextCheck: ContinuousClock.Instant? { end == nil ? deadline : nil }

    /// Handles an unresponsive launcher: resumes it, in case it was stopped, and kills it later.
    package func checkLauncher(at now: ContinuousClock.Instant) {
        guard end == nil, let due = deadline, now >= due else { return }
        if !isAsked, launcher.hasStarted {
            // The program has started without the launcher, which may be stopped and unable to report the exit.
            _ = launcher.resumeItself()
            deadline = now + Self.startTimeout
            return
        }
        launcher.resume()
        deadline = isGivenUp ? nil : now + Self.responseTimeout
        if isGivenUp { launcher.kill() }
        isGivenUp = true
    }

    /// Resumes a launcher that was stopped and may have an exit to report; returns false when it was not stopped.
    func wakeLauncher() -> Bool { end == nil && launcher.resumeItself() }

    /// Returns whether the program and all its descendants have exited; does not block.
    package func checkForEnd() -> Bool {
        while end == nil {
            var count: Int64 = 0
            withUnsafeTemporaryAllocation(byteCount: 4 << 10, alignment: 8) { buffer in
                count = cal_receive(launcher.control, buffer.baseAddress, buffer.count)
                if count > 0 { message += buffer[..<Int(count)] }
            }
            if count == -Int64(EAGAIN) || count == -Int64(EINTR) { return false }
            guard count > 0 else {
                hadStarted = launcher.hasStarted
                end = endOfLauncher()
                if end != nil { launcher.whenReady(nil) }
                return end != nil
            }
            readMessage()
        }
        return end != nil
    }

    /// Reads the message of the launcher once it is complete; then the launcher is free for another program.
    private func readMessage() {
        guard message.count >= 12 else { return }
        let (news, status, length) = message.withUnsafeBytes { $0.loadUnaligned(as: (UInt32, Int32, UInt32).self) }
        guard message.count >= 12 + Int(length) else { return }
        let words = String(decoding: message[12..<12 + Int(length)], as: UTF8.self)
        hadStarted = news == 0
        switch news {
        case 0: end = status & 0x7F == 0 ? .exited(status: status >> 8 & 0xFF) : .signalled(status & 0x7F)
        case 1, 3, 4:
            end = .couldNotStart(words)
            miss = [3: .gone, 4: .forbidden][news]
        default: end = .notLaunched(words)
        }
        // A launcher that could not even read its plan, or prepare for it, exits.
        if news == 0 || status == 0 { home.give(launcher) } else { launcher.whenReady(nil) }
    }

    /// Returns how the program terminated according to the exit of the launcher, which has sent no message; nil until
    /// that is known.
    private func endOfLauncher() -> ProgramResult.Termination? {
        guard hadStarted else { return .notLaunched("alight-launch exited before the program started") }
        guard let (status, isSignal) = launcher.end else { return nil }
        return isSignal ? .signalled(status) : .notLaunched("alight-launch exited")
    }
}

extension OwnedDescriptor {
    /// Writes as much as the pipe accepts now, and adds that to `written`; returns false if it will accept no more.
    package func write(_ bytes: [UInt8], from written: inout Int) -> Bool {
        while written < bytes.count {
            let count = bytes.withUnsafeBytes { bytes in
                Glibc.write(raw, bytes.baseAddress.map { $0 + written }, bytes.count - written)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return errno == EAGAIN }
            written += count
        }
        return true
    }

    /// Returns the available bytes; nil when none are available now, and at end-of-file, where it closes the descriptor.
    package func readOrClose() -> ArraySlice<UInt8>? {
        guard let bytes = readAvailable() else { return nil }
        guard bytes.isEmpty else { return bytes }
        close()
        return nil
    }
}

import ActionAPI
import CAlightLinux
import Glibc
import System

/// Writes the input of a running program, reads its output, and terminates it when necessary; used on one thread.
final class RunningProgram {
    private let command: Command
    private let input: [UInt8]
    private let program: LaunchedProgram
    private let start: ContinuousClock.Instant
    private var written = 0

    private var ended = ProgramResult(termination: .stopped)
    private var outputLines = OutputLines()
    private var errorLines = OutputLines()
    /// The reason why the program was asked to exit; nil when it was not.
    private var cause: ProgramResult.Termination?

    /// - Parameters:
    ///   - command: The command that was run; its own input is not used.
    ///   - program: The running program; this process's ends of its pipes do not block.
    ///   - input: The bytes for standard input.
    ///   - start: The time from which the timeout counts.
    init(_ command: Command, _ program: LaunchedProgram, input: [UInt8], since start: ContinuousClock.Instant) {
        self.command = command
        self.input = input
        self.program = program
        self.start = start
    }

    /// Waits until the program has exited, and serves its streams meanwhile.
    func wait(stop: StopSignal, report: (ArraySlice<UInt8>) -> Void) -> ProgramResult {
        // A timeout of more than a century has no effect, and would overflow the clock.
        var deadline = start + min(command.timeout, .seconds(3_155_760_000))
        write()
        while true {
            var descriptors = [
                pollfd(fd: program.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: cause == nil ? stop.descriptor : -1, events: Int16(POLLIN), revents: 0),
                pollfd(fd: program.input.raw, events: Int16(POLLOUT), revents: 0),
                pollfd(fd: program.output.raw, events: Int16(POLLIN), revents: 0),
                pollfd(fd: program.error.raw, events: Int16(POLLIN), revents: 0),
            ]
            var left = [cause == nil ? deadline : nil, program.nextCheck].compactMap(\.self).min().pollLimit
            if stop.descriptor < 0 { left = left < 0 ? Self.tick : min(left, Self.tick) }
            _ = cal_poll(&descriptors, UInt(descriptors.count), left)
            if descriptors[0].revents != 0, program.checkForEnd() { break }
            let now = ContinuousClock.now
            if cause == nil {
                if stop.isRaised {
                    terminate(.stopped)
                } else if now >= deadline, program.wakeLauncher() {
                    // The program may have exited in time, and its launcher may have been unable to report that.
                    deadline = now + .seconds(1)
                } else if now >= deadline {
                    command.whenOverdue()
                    terminate(.timedOut)
                }
            }
            program.checkLauncher(at: now)
            if descriptors[2].revents != 0 { write() }
            // Several times, so that a program that prints much does not have to wait for poll(2) in between.
            if descriptors[3].revents != 0 { for _ in 0..<64 where !readOutput(report) { break } }
            if descriptors[4].revents != 0 { for _ in 0..<64 where !readError(report) { break } }
        }
        finish(report)
        return ended
    }

    // MARK: - Termination

    private func terminate(_ cause: ProgramResult.Termination) {
        self.cause = cause
        program.terminate(grace: command.grace)
    }

    /// Reads what is still in the pipes, and determines how the program terminated.
    private func finish(_ report: (ArraySlice<UInt8>) -> Void) {
        program.input.close()
        // The launcher has waited for all processes that could write. If a process has escaped (one stuck in the
        // kernel), no more is read than a pipe can contain.
        for _ in 0..<16 where !readOutput(report) { break }
        for _ in 0..<16 where !readError(report) { break }
        outputLines.finish(report)
        errorLines.finish(report)
        ended.lastLine = errorLines.lastLine ?? outputLines.lastLine
        ended.unread = outputLines.skipped + errorLines.skipped
        let termination = program.end ?? .signalled(SIGKILL)
        // A program that never ran was not terminated here.
        ended.termination = program.hasStarted ? cause ?? termination : termination
        ended.miss = program.miss
        ended.duration = .now - start
    }

    // MARK: - Streams

    /// Writes as much as the pipe accepts now; poll(2) reports when it accepts more.
    private func write() {
        // After EPIPE, the program does not read more, which is allowed.
        if !program.input.write(input, from: &written) || written == input.count { program.input.close() }
    }

    /// Reads once; returns false when no more is available now.
    private func readOutput(_ report: (ArraySlice<UInt8>) -> Void) -> Bool {
        guard let bytes = program.output.readOrClose() else { return false }
        switch command.output {
        case .collected(let limit):
            let capacity = limit - ended.output.count
            ended.output += bytes.prefix(capacity)
            if bytes.count > capacity {
                // With the pipe closed, even a program that ignores SIGTERM cannot continue to print.
                program.output.close()
                if cause == nil { terminate(.outputTooLarge) }
            }
        case .reported:
            ended.log.append(bytes)
            outputLines.add(bytes, report)
        }
        return true
    }

    private func readError(_ report: (ArraySlice<UInt8>) -> Void) -> Bool {
        guard let bytes = program.error.readOrClose() else { return false }
        ended.log.append(bytes)
        errorLines.add(bytes, report)
        return true
    }

    /// The polling interval, in nanoseconds, for what no descriptor reports when descriptors have run out.
    private static let tick: Int64 = 20_000_000
}

import CAlightLinux
import Glibc

/// Feeds a running program, takes what it writes, and ends it when it must end; used on one thread.
final class RunningProgram {
    private let command: Command
    private let input: [UInt8]
    private let program: LaunchedProgram
    private let start: ContinuousClock.Instant
    private var fed = 0

    private var ended = Ended(way: .stopped)
    private var outputLines = OutputLines()
    private var errorLines = OutputLines()
    /// Why we have asked the program to end.
    private var cause: Ended.Way?

    /// - Parameters:
    ///   - command: What was run; its own input is not used.
    ///   - program: It, our ends of whose pipes don't block.
    ///   - input: What stands on standard input.
    ///   - start: From when its time is counted.
    init(_ command: Command, _ program: LaunchedProgram, input: [UInt8], since start: ContinuousClock.Instant) {
        self.command = command
        self.input = input
        self.program = program
        self.start = start
    }

    /// Stays with the program to its end.
    func wait(stop: StopSignal, report: (ArraySlice<UInt8>) -> Void) -> Ended {
        // A time-out beyond a century is none, and would overflow the clock.
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
            var left = [cause == nil ? deadline : nil, program.nextLook].compactMap(\.self).min().pollLimit
            if stop.descriptor < 0 { left = left < 0 ? Self.tick : min(left, Self.tick) }
            _ = cal_poll(&descriptors, UInt(descriptors.count), left)
            if descriptors[0].revents != 0, program.lookForEnd() { break }
            let now = ContinuousClock.now
            if cause == nil {
                if stop.isRaised {
                    terminate(.stopped)
                } else if now >= deadline, program.wakeLauncher() {
                    // The program may have ended in its time, and its launcher not have been able to say so.
                    deadline = now + Self.second
                } else if now >= deadline {
                    command.whenOverdue()
                    terminate(.timedOut)
                }
            }
            program.lookAfterLauncher(at: now)
            if descriptors[2].revents != 0 { write() }
            // Several times, since what prints much need not wait for poll(2) in between.
            if descriptors[3].revents != 0 { for _ in 0..<64 where !readOutput(report) { break } }
            if descriptors[4].revents != 0 { for _ in 0..<64 where !readError(report) { break } }
        }
        finish(report)
        return ended
    }

    // MARK: - The end

    private func terminate(_ cause: Ended.Way) {
        self.cause = cause
        program.terminate(grace: command.grace)
    }

    /// Takes what is still in the pipes, and settles how the program ended.
    private func finish(_ report: (ArraySlice<UInt8>) -> Void) {
        program.input.close()
        // The launcher has ended all that could write. Should a process have escaped (one stuck in the kernel), no
        // more is read than a pipe can hold.
        for _ in 0..<16 where !readRest(report) { break }
        outputLines.finish(report)
        errorLines.finish(report)
        ended.lastLine = errorLines.lastLine ?? outputLines.lastLine
        ended.unread = outputLines.skipped + errorLines.skipped
        let way = program.end ?? .signalled(SIGKILL)
        // What never ran was not ended by us.
        ended.way = program.hasStarted ? cause ?? way : way
        ended.miss = program.miss
        ended.duration = .now - start
    }

    // MARK: - The streams

    /// Writes what the pipe takes now; poll(2) says when it takes more.
    private func write() {
        guard fed < input.count else { return program.input.close() }
        let count = input.withUnsafeBytes { bytes in
            Glibc.write(program.input.raw, bytes.baseAddress.map { $0 + fed }, bytes.count - fed)
        }
        if count >= 0 {
            fed += count
            if fed == input.count { program.input.close() }
        } else if errno != EAGAIN && errno != EINTR {
            // EPIPE: it does not want to read more, which is its right.
            program.input.close()
        }
    }

    /// Reads what is there already; false when that is nothing.
    private func readRest(_ report: (ArraySlice<UInt8>) -> Void) -> Bool {
        var descriptors = [
            pollfd(fd: program.output.raw, events: Int16(POLLIN), revents: 0),
            pollfd(fd: program.error.raw, events: Int16(POLLIN), revents: 0),
        ]
        guard cal_poll(&descriptors, UInt(descriptors.count), 0) > 0 else { return false }
        // Without POLLIN there is but the end.
        let isReady = descriptors.map { $0.revents & Int16(POLLIN) != 0 }
        if isReady[0] { _ = readOutput(report) }
        if isReady[1] { _ = readError(report) }
        return isReady[0] || isReady[1]
    }

    /// Reads once; false when nothing more comes now.
    private func readOutput(_ report: (ArraySlice<UInt8>) -> Void) -> Bool {
        guard let bytes = program.output.readAvailable() else { return false }
        guard !bytes.isEmpty else {
            program.output.close()
            return false
        }
        switch command.output {
        case .collected(let limit):
            let room = limit - ended.output.count
            ended.output += bytes.prefix(room)
            if bytes.count > room {
                // With the pipe gone, even a program that ignores SIGTERM can't go on printing.
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
        guard let bytes = program.error.readAvailable() else { return false }
        guard !bytes.isEmpty else {
            program.error.close()
            return false
        }
        ended.log.append(bytes)
        errorLines.add(bytes, report)
        return true
    }

    private static let second = Duration.seconds(1)

    /// How often to look at what no descriptor tells of, when descriptors have run out.
    private static let tick: Int64 = 20_000_000
}

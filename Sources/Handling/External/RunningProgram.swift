import CAlightLinux
import Foundation
import Glibc

/// Feeds a running program, takes what it writes, and ends it when it must end; used on one thread.
final class RunningProgram {
    private let command: Command
    private let process: Process
    private let end: ProcessEnd
    private let start: ContinuousClock.Instant
    /// Readable when the launcher has ended; nil when that has happened already, or descriptors have run out.
    private let pidfd: OwnedDescriptor?

    private let input: OwnedDescriptor
    private let output: OwnedDescriptor
    private let error: OwnedDescriptor
    private let feed: [UInt8]
    private var fed = 0

    private var ended = Ended(way: .stopped)
    private var outputLines = LineSplitter()
    private var errorLines = LineSplitter()
    private var lastOutputLine: String?
    private var lastErrorLine: String?
    /// Why we have asked the program to end.
    private var cause: Ended.Way?
    /// When the launcher should have killed the program long ago, and is killed itself.
    private var lastResort: ContinuousClock.Instant?

    init(_ command: Command, _ spawned: SpawnedProcess, header: [UInt8], since start: ContinuousClock.Instant) {
        self.command = command
        process = spawned.process
        end = spawned.end
        self.start = start
        feed = header + command.input
        input = spawned.input
        output = spawned.output
        error = spawned.error
        for descriptor in [spawned.input, spawned.output, spawned.error] {
            _ = fcntl(descriptor.raw, F_SETFL, O_NONBLOCK)
        }
        let opened = cal_pidfd_open(spawned.process.processIdentifier)
        pidfd = opened >= 0 ? OwnedDescriptor(opened) : nil
    }

    /// Stays with the program to its end.
    func wait(stop: StopSignal, report: (ProgramReport) -> Void) -> Ended {
        // A time-out beyond a century is none, and would overflow the clock.
        let deadline = start + min(command.timeout, .seconds(3_155_760_000))
        let needsTick = pidfd == nil || stop.descriptor < 0
        while true {
            var descriptors = [
                pollfd(fd: pidfd?.raw ?? -1, events: Int16(POLLIN), revents: 0),
                pollfd(fd: cause == nil ? stop.descriptor : -1, events: Int16(POLLIN), revents: 0),
                pollfd(fd: input.raw, events: Int16(POLLOUT), revents: 0),
                pollfd(fd: output.raw, events: Int16(POLLIN), revents: 0),
                pollfd(fd: error.raw, events: Int16(POLLIN), revents: 0),
            ]
            var left = (cause == nil ? deadline : lastResort).pollLimit
            if needsTick { left = left < 0 ? Self.tick : min(left, Self.tick) }
            _ = cal_poll(&descriptors, UInt(descriptors.count), left)
            if descriptors[0].revents != 0 || (pidfd == nil && end.wait(0) != nil) { break }
            let now = ContinuousClock.now
            if cause == nil {
                if stop.isRaised {
                    terminate(.stopped)
                } else if now >= deadline {
                    command.whenOverdue()
                    terminate(.timedOut)
                }
            } else if let moment = lastResort, now >= moment {
                signal(SIGKILL)
                lastResort = nil
            }
            if descriptors[2].revents != 0 { write() }
            if descriptors[3].revents != 0 { _ = readOutput(report) }
            if descriptors[4].revents != 0 { _ = readError(report) }
        }
        finish(report)
        return ended
    }

    // MARK: - The end

    private func terminate(_ cause: Ended.Way) {
        self.cause = cause
        lastResort = .now + command.grace + .seconds(5)
        signal(SIGTERM)
    }

    private func signal(_ number: Int32) {
        if let pidfd {
            _ = cal_pidfd_signal(pidfd.raw, number)
        } else if end.wait(0) == nil {
            kill(process.processIdentifier, number)
        }
    }

    /// Takes what is still in the pipes, and settles how the program ended.
    private func finish(_ report: (ProgramReport) -> Void) {
        input.close()
        // The launcher has ended all that could write, so the pipes are at their end. Should a process
        // have escaped (one stuck in the kernel), no more is read than a pipe can hold.
        var most = 16
        while most > 0, readOutput(report) { most -= 1 }
        most = 16
        while most > 0, readError(report) { most -= 1 }
        outputLines.finish { take($0, report, &lastOutputLine) }
        errorLines.finish { take($0, report, &lastErrorLine) }
        ended.lastLine = lastErrorLine ?? lastOutputLine
        ended.way = cause ?? Ended.Way(end, process, said: ended.output.isEmpty ? ended.lastLine : nil)
        ended.duration = .now - start
    }

    // MARK: - The streams

    private func write() {
        let count = feed.withUnsafeBytes { bytes in
            Glibc.write(input.raw, bytes.baseAddress.map { $0 + fed }, bytes.count - fed)
        }
        if count >= 0 {
            fed += count
            if fed == feed.count { input.close() }
        } else if errno != EAGAIN && errno != EINTR {
            // EPIPE: it does not want to read more, which is its right.
            input.close()
        }
    }

    /// Reads once; false when nothing more comes now.
    private func readOutput(_ report: (ProgramReport) -> Void) -> Bool {
        guard let bytes = output.readAvailable() else { return false }
        guard !bytes.isEmpty else {
            output.close()
            return false
        }
        switch command.output {
        case .collected(let limit):
            let room = limit - ended.output.count
            ended.output += bytes.prefix(room)
            if bytes.count > room {
                // With the pipe gone, even a program that ignores SIGTERM can't go on printing.
                output.close()
                if cause == nil { terminate(.outputTooLarge) }
            }
        case .reported:
            ended.log.append(bytes)
            outputLines.add(bytes) { take($0, report, &lastOutputLine) }
        }
        return true
    }

    private func readError(_ report: (ProgramReport) -> Void) -> Bool {
        guard let bytes = error.readAvailable() else { return false }
        guard !bytes.isEmpty else {
            error.close()
            return false
        }
        ended.log.append(bytes)
        errorLines.add(bytes) { take($0, report, &lastErrorLine) }
        return true
    }

    private func take(_ line: ArraySlice<UInt8>, _ report: (ProgramReport) -> Void, _ last: inout String?) {
        let one = ProgramReport(line: line)
        if case .line(_, let text) = one {
            guard text.contains(where: { !$0.isWhitespace }) else { return }
            last = text
        }
        report(one)
    }

    /// How often to look at what no descriptor tells of, when descriptors have run out.
    private static let tick: Int64 = 20_000_000
}

import ActionAPI
import CAlightLinux
import Glibc
import Logging
import Programs
import System

/// A serving process, from its start to its exit, on a thread of its own.
final class ServingProcess {
    private let number: Int
    private let plugin: ServedPlugin
    private let program: ServedProgram
    private let waker: Waker
    private let process: LaunchedProgram

    /// The bytes to write.
    private var outbox: [UInt8] = []
    private var written = 0
    /// Whether the input is closed once everything is written.
    private var isClosing = false
    /// The lines of its output; one that is longer than a response may be arrives as a piece of one byte more.
    private var lines = LineSplitter(limit: ResponseReader.limit + 1, keepsReturns: true)
    private var log = ServeLog()
    /// The requests that were sent to it and are not answered.
    private var open: [ServeRequest] = []
    /// The logger of the request that was sent last, without the metadata of its job.
    private var logger: Logger

    /// Starts a process, serves its streams until it has exited, and reports that to the plugin.
    ///
    /// - Parameters:
    ///   - number: The number of the process.
    ///   - plugin: The plugin that it belongs to.
    ///   - request: The request that it is started for, which another process may get.
    ///   - waker: Wakes the thread when there is something to do.
    static func run(_ number: Int, of plugin: ServedPlugin, for request: ServeRequest, waker: Waker) {
        var command = request.program.command
        var logger = request.ownLogger
        var lastLine: String?
        let termination: ProgramResult.Termination
        do throws(ScratchFailure) {
            let scratch = try plugin.scratchDirectories.make()
            defer { try? ScratchDirectories.remove(scratch) }
            command.environment.append(("TMPDIR", scratch.bytes))
            if command.directory.path.bytes.isEmpty { command.directory = ProgramPath(scratch) }
            do throws(LaunchFailure) {
                let process = try plugin.launcher.start(command)
                let serving = ServingProcess(number, plugin, request, waker, process)
                termination = serving.serve()
                (logger, lastLine) = (serving.logger, serving.log.lastLine)
            } catch {
                termination = error.termination
            }
        } catch {
            termination = .notLaunched(error.message)
        }
        if let reason = plugin.end(number, termination, lastLine: lastLine) {
            logger.warning("\(request.program.title) \(reason)")
        }
    }

    private init(
        _ number: Int, _ plugin: ServedPlugin, _ request: ServeRequest, _ waker: Waker, _ process: LaunchedProgram
    ) {
        self.number = number
        self.plugin = plugin
        self.waker = waker
        self.process = process
        program = request.program
        logger = request.ownLogger
    }

    private func serve() -> ProgramResult.Termination {
        while true {
            let (commands, deadline) = plugin.change(by: number) { [number] in $0.turn(of: number, at: $1) }
            for command in commands { perform(command) }
            write()
            var descriptors = [
                pollfd(fd: process.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: waker.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: written < outbox.count ? process.input.raw : -1, events: Int16(POLLOUT), revents: 0),
                pollfd(fd: process.output.raw, events: Int16(POLLIN), revents: 0),
                pollfd(fd: process.error.raw, events: Int16(POLLIN), revents: 0),
            ]
            let left = [deadline, process.nextCheck].compactMap(\.self).min().pollLimit
            _ = cal_poll(&descriptors, UInt(descriptors.count), left)
            if descriptors[0].revents != 0, process.checkForEnd() { break }
            if descriptors[1].revents != 0 { waker.clear() }
            if descriptors[2].revents != 0 { write() }
            // Log output before an answer belongs to the request of that answer.
            if descriptors[4].revents != 0 || descriptors[3].revents != 0 { _ = readError() }
            if descriptors[3].revents != 0 { _ = readOutput() }
            process.checkLauncher(at: .now)
        }
        return finish()
    }

    private func finish() -> ProgramResult.Termination {
        process.input.close()
        // The launcher has waited for all processes that could write. If a process has escaped, no more is read than a
        // pipe can contain.
        for _ in 0..<16 where !readError() { break }
        for _ in 0..<16 where !readOutput() { break }
        log.finish(open, logger)
        return process.end ?? .signalled(SIGKILL)
    }

    // MARK: - Commands

    private func perform(_ command: ServeCommand) {
        switch command {
        case .run(let request):
            open.append(request)
            logger = request.ownLogger
        case .cancel(let request, .timeOut):
            let text = OutcomeTable.overdue(program.title, after: request.timeout, grace: program.command.grace)
            request.logger.warning("\(text)")
        case .endOfFile: isClosing = true
        case .terminate: process.terminate(grace: program.command.grace)
        case .kill: process.kill()
        case .hello, .cancel, .ping: break
        }
        if process.input.raw >= 0 { outbox += command.line }
    }

    private func receive(_ message: ServeMessage) {
        switch plugin.change(by: number, { [number] in $0.receive(message, from: number, at: $1) }) {
        case .answered(let request, let line, let cause):
            open.removeAll { $0 == request }
            request.deliver(.answered(line, after: cause))
        case .progress(let request, let fraction, let message): request.progress(fraction, message)
        case .notice(let text): logger.warning("\(program.title) \(text)")
        case nil: break
        }
    }

    private func lose(_ failure: ServeSession.Failure) {
        plugin.change(by: number) { [number] in $0.processes[number]?.session.lose(failure, at: $1) }
    }

    // MARK: - Streams

    private func write() {
        if process.input.raw >= 0 {
            guard process.input.write(outbox, from: &written) else {
                closeInput()
                return lose(.closedInput)
            }
            if written < outbox.count { return }
        }
        outbox.removeAll(keepingCapacity: outbox.count < 1 << 16)
        written = 0
        if isClosing { closeInput() }
    }

    private func closeInput() {
        process.input.close()
        (outbox, written) = ([], 0)
    }

    /// Reads once; returns false when no more is available now.
    private func readOutput() -> Bool {
        let wasOpen = process.output.raw >= 0
        guard let bytes = process.output.readOrClose() else {
            if wasOpen, process.output.raw < 0 { lose(.closedOutput) }
            return false
        }
        for line in lines.add(bytes) {
            guard line.count <= ResponseReader.limit else {
                plugin.change(by: number) { [number] slots, _ in
                    slots.processes[number]?.session.receiveTooLong(Array(line.prefix(4096)))
                }
                // With the pipe closed, even a program that ignores SIGTERM cannot continue to print.
                process.output.close()
                return false
            }
            if let message = ServeMessage(line: line) { receive(message) }
        }
        return true
    }

    private func readError() -> Bool {
        guard let bytes = process.error.readOrClose() else { return false }
        log.take(bytes, open, logger)
        return true
    }
}

extension ServeRequest {
    /// The logger without the metadata of the job.
    fileprivate var ownLogger: Logger {
        var logger = logger
        logger[metadataKey: "job"] = nil
        logger[metadataKey: "rule"] = nil
        return logger
    }
}

import ActionAPI
import CAlightLinux
import Glibc
import Logging
import Programs
import Synchronization
import System

/// A serving process, from its start to its exit; a state machine that the loop drives.
final class ServingProcess: EventSource, @unchecked Sendable {
    // The members are accessed while `turn` is locked.
    private let turn = Mutex(())
    private let number: Int
    private let plugin: ServedPlugin
    private let program: ServedProgram
    private let process: LaunchedProgram
    private let scratch: PathBytes
    private var isOver = false

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

    private enum Stream: Int { case input, output, error }

    /// Starts a process, which then serves requests until it exits and that has been reported to the plugin.
    ///
    /// - Parameters:
    ///   - number: The number of the process.
    ///   - plugin: The plugin that it belongs to.
    ///   - request: The request that it is started for, which another process may get.
    static func start(_ number: Int, of plugin: ServedPlugin, for request: ServeRequest) {
        var command = request.program.command
        let termination: ProgramResult.Termination
        do throws(ScratchFailure) {
            let scratch = try plugin.scratchDirectories.make()
            command.environment.append(("TMPDIR", scratch.bytes))
            if command.directory.path.bytes.isEmpty { command.directory = ProgramPath(scratch) }
            do throws(LaunchFailure) {
                let process = try plugin.launcher.start(command)
                return ServingProcess(number, plugin, request, process, scratch).begin()
            } catch {
                try? ScratchDirectories.remove(scratch)
                termination = error.termination
            }
        } catch {
            termination = .notLaunched(error.message)
        }
        plugin.end(number, of: request.program, termination, lastLine: nil, request.ownLogger)
    }

    private init(
        _ number: Int, _ plugin: ServedPlugin, _ request: ServeRequest, _ process: LaunchedProgram,
        _ scratch: PathBytes
    ) {
        self.number = number
        self.plugin = plugin
        self.process = process
        self.scratch = scratch
        program = request.program
        logger = request.ownLogger
    }

    private func begin() {
        turn.withLock { _ in
            let loop = EventLoop.shared
            loop.watch(process.input.raw, CAL_WRITABLE, for: self, as: Stream.input.rawValue)
            loop.watch(process.output.raw, CAL_RECEIVES, for: self, as: Stream.output.rawValue)
            loop.watch(process.error.raw, CAL_RECEIVES, for: self, as: Stream.error.rawValue)
            process.whenReady { [self] in handle { $0.isOver = $0.process.checkForEnd() } }
        }
        plugin.add(self, number)
    }

    func handle(_ number: Int?) {
        handle { process in
            switch number.flatMap(Stream.init) {
            case .output:
                if process.readOutput() { EventLoop.shared.report(Stream.output.rawValue, to: process) }
            case .error: if process.readError() { EventLoop.shared.report(Stream.error.rawValue, to: process) }
            case .input, nil: break
            }
        }
    }

    private func handle(_ event: (ServingProcess) -> Void) {
        turn.withLock { _ in
            guard !isOver else { return }
            event(self)
            if isOver { return finish() }
            let (commands, deadline) = plugin.change(by: number) { [number] in $0.turn(of: number, at: $1) }
            for command in commands { perform(command) }
            write()
            process.checkLauncher(at: .now)
            let next = [deadline, process.nextCheck].compactMap(\.self).min()
            EventLoop.shared.setDeadline(next, of: self)
        }
    }

    private func finish() {
        process.input.close()
        // The launcher has waited for all processes that could write. If a process has escaped, no more is read than a
        // pipe can contain.
        for _ in 0..<16 where !readError() { break }
        for _ in 0..<16 where !readOutput() { break }
        process.output.close()
        process.error.close()
        EventLoop.shared.forget(self)
        log.finish(open, logger)
        let termination = process.end ?? .signalled(SIGKILL)
        let end: @Sendable () -> Void = { [self] in
            try? ScratchDirectories.remove(scratch)
            plugin.end(number, of: program, termination, lastLine: log.lastLine, logger)
        }
        if let thread = WorkerThread(name: "alight-serve", body: end) { thread.detach() } else { end() }
    }

    // MARK: - Commands

    private func perform(_ command: ServeCommand) {
        switch command {
        case .run(let request):
            open.append(request)
            logger = request.ownLogger
        case .cancel(let request, .timedOut):
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
        switch plugin.change(by: number, { [number] in $0.sessions[number]?.receive(message, at: $1) ?? nil }) {
        case .answered(let request, let line, let cause):
            open.removeAll { $0 == request }
            request.deliver(.answered(line, after: cause))
        case .progress(let request, let fraction, let message): request.progress(fraction, message)
        case .notice(let text): logger.warning("\(program.title) \(text)")
        case nil: break
        }
    }

    private func lose(_ failure: ServeSession.Failure) {
        plugin.change(by: number) { [number] in $0.sessions[number]?.lose(failure, at: $1) }
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
        // Log output before an answer belongs to the request of that answer, and may be written during the read above.
        _ = readError()
        for line in lines.add(bytes) {
            guard line.count <= ResponseReader.limit else {
                plugin.change(by: number) { [number] slots, _ in
                    slots.sessions[number]?.receiveTooLong(Array(line.prefix(4096)))
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

package import ActionAPI
import CAlightLinux
import Glibc
import Synchronization
import System

/// A program from its preparation to its end: writes its input, reads its output, and terminates it when necessary.
///
/// A state machine that the loop drives: no thread waits for the program.
package final class RunningProgram: EventSource, @unchecked Sendable {
    // The members are accessed while `turn` is locked.
    private let turn = Mutex(())
    private let output: Command.Output
    private let grace: Duration
    private let whenOverdue: @Sendable () -> Void
    private var input: [UInt8]
    private let program: LaunchedProgram
    private let start: ContinuousClock.Instant
    private let stop: StopSignal
    private let report: @Sendable (ArraySlice<UInt8>) -> Void
    private var whenEnded: @Sendable (ProgramResult) -> Void = { _ in }
    private var written = 0
    private var deadline: ContinuousClock.Instant
    private var forgetStop: () -> Void = {}

    private var ended = ProgramResult(termination: .stopped)
    private var isOver = false
    private var outputLines = OutputLines()
    private var errorLines = OutputLines()
    /// The reason why the program was asked to exit; nil when it was not.
    private var cause: ProgramResult.Termination?

    private enum Stream: Int { case input, output, error }

    /// - Parameters:
    ///   - command: The command to run.
    ///   - program: The program, which has not been started; this process's ends of its pipes do not block.
    ///   - start: The time from which the timeout counts.
    ///   - stop: Terminates the program when raised.
    ///   - report: Receives the lines of its log as they arrive, on a thread of the loop.
    init(
        _ command: Command, _ program: LaunchedProgram, since start: ContinuousClock.Instant, stop: StopSignal,
        report: @escaping @Sendable (ArraySlice<UInt8>) -> Void
    ) {
        (output, grace, whenOverdue, input) = (command.output, command.grace, command.whenOverdue, command.input)
        self.program = program
        self.start = start
        self.stop = stop
        self.report = report
        // A timeout of more than a century has no effect, and would overflow the clock.
        deadline = start + min(command.timeout, .seconds(3_155_760_000))
        // Nothing else depends on the program's start.
        write()
        let loop = EventLoop.shared
        loop.watch(program.input.raw, CAL_WRITABLE, for: self, as: Stream.input.rawValue)
        loop.watch(program.output.raw, CAL_RECEIVES, for: self, as: Stream.output.rawValue)
        loop.watch(program.error.raw, CAL_RECEIVES, for: self, as: Stream.error.rawValue)
    }

    deinit { EventLoop.shared.forget(self) }

    /// Runs the program once it has the permission, and waits until it and all its descendants have exited.
    ///
    /// Nothing that the start needs is kept until then.
    package func run(_ permission: StartPermission? = nil) async -> ProgramResult {
        await withUnsafeContinuation { continuation in
            begin(permission) { continuation.resume(returning: $0) }
        }
    }

    /// Runs the program, and blocks until it and all its descendants have exited.
    func runBlocking() -> ProgramResult {
        let result = Request<ProgramResult>()
        begin(nil, whenEnded: result.end)
        return result.wait() ?? ProgramResult(termination: .stopped)
    }

    private func begin(_ permission: StartPermission?, whenEnded: @escaping @Sendable (ProgramResult) -> Void) {
        self.whenEnded = whenEnded
        guard let permission else { return begin(waits: true) }
        permission.whenDecided { [self] isGranted in
            if isGranted { return begin(waits: false) }
            program.cancel()
            end(.notLaunched("Alight stops"))
        }
    }

    private func begin(waits: Bool) {
        do throws(LaunchFailure) {
            if try program.start(waits: waits) { return serve() }
            let thread = WorkerThread(name: "alight-start") { [self] in begin(waits: true) }
            guard let thread else { throw LaunchFailure(reason: "no thread can be started") }
            thread.detach()
        } catch {
            end(error.termination)
        }
    }

    /// Ends a program that never ran.
    private func end(_ termination: ProgramResult.Termination) { whenEnded(ProgramResult(termination: termination)) }

    /// Serves the started program, which keeps this object alive until it has exited.
    private func serve() {
        turn.withLock { _ in
            setDeadline()
            // They are called by the loop, after this.
            let observation = stop.observe { [weak self] in EventLoop.shared.call { [weak self] in self?.raiseStop() } }
            forgetStop = { [stop] in stop.forget(observation) }
            program.whenReady { [self] in handle { $0.checkForEnd() } }
        }
    }

    package func handle(_ number: Int?) {
        handle { program in
            switch number.flatMap(Stream.init) {
            case .input: program.write()
            case .output: program.read(.output) { program.readOutput() }
            case .error: program.read(.error) { program.readError() }
            case nil: program.checkTime()
            }
        }
    }

    private func raiseStop() { handle { if $0.cause == nil { $0.terminate(.stopped) } } }

    private func handle(_ event: (RunningProgram) -> Void) {
        let hasEnded = turn.withLock { _ in
            guard !isOver else { return false }
            event(self)
            return isOver
        }
        if hasEnded { whenEnded(ended) }
    }

    // MARK: - Termination

    private func checkTime() {
        let now = ContinuousClock.now
        if cause == nil, now >= deadline {
            if program.wakeLauncher() {
                // The program may have exited in time, and its launcher may have been unable to report that.
                deadline = now + .seconds(1)
            } else {
                whenOverdue()
                terminate(.timedOut)
            }
        }
        program.checkLauncher(at: now)
        setDeadline()
    }

    private func setDeadline() {
        let next = [cause == nil ? deadline : nil, program.nextCheck].compactMap(\.self).min()
        EventLoop.shared.setDeadline(next, of: self)
    }

    private func terminate(_ cause: ProgramResult.Termination) {
        self.cause = cause
        program.terminate(grace: grace)
        setDeadline()
    }

    /// Reads what is still in the pipes once the program has exited, and determines how it terminated.
    private func checkForEnd() {
        guard program.checkForEnd() else { return }
        isOver = true
        forgetStop()
        // The launcher has waited for all processes that could write. If a process has escaped (one stuck in the
        // kernel), no more is read than a pipe can contain.
        for _ in 0..<16 where !readOutput() { break }
        for _ in 0..<16 where !readError() { break }
        for stream in [program.input, program.output, program.error] { stream.close() }
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

    /// Writes as much as the pipe accepts now.
    private func write() {
        // After EPIPE, the program does not read more, which is allowed.
        guard !program.input.write(input, from: &written) || written == input.count else { return }
        program.input.close()
        input = []
    }

    /// Reads a few times, so that a program that prints much does not delay others.
    private func read(_ stream: Stream, _ readOnce: () -> Bool) {
        for _ in 0..<4 where !readOnce() { return }
        EventLoop.shared.report(stream.rawValue, to: self)
    }

    /// Reads once; returns false when no more is available now.
    private func readOutput() -> Bool {
        guard let bytes = program.output.readOrClose() else { return false }
        switch output {
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

    private func readError() -> Bool {
        guard let bytes = program.error.readOrClose() else { return false }
        ended.log.append(bytes)
        errorLines.add(bytes, report)
        return true
    }
}

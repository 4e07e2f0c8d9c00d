package import ActionAPI
import FileEvents
import Logging
package import PersistentPlugins
import PluginProtocol
package import Programs
import Rules
package import System

/// Runs external programs for invocations: scratch directory, request, environment, log, outcome.
///
/// Plugins, `exec` and `shell` differ only in the command, and in whether their output is a response.
package struct PluginHost: Sendable {
    let launcher: ProcessLauncher
    let scratchDirectories: ScratchDirectories
    let environment: ProgramEnvironment
    /// How long a program may take to exit after SIGTERM.
    let grace: Duration
    /// The place of files that programs leave behind; nil if there is none.
    let kept: KeptFiles?
    /// The processes of serving plugins.
    let serving: ServedPlugins
    /// The files that root has found to be safe.
    let ownership = OwnershipRecord()

    package init(
        launcher: ProcessLauncher, scratchDirectories: ScratchDirectories, environment: ProgramEnvironment,
        grace: Duration = .seconds(10), kept: KeptFiles? = nil, serveLimits: ServeLimits = ServeLimits()
    ) {
        self.launcher = launcher
        self.scratchDirectories = scratchDirectories
        self.environment = environment
        self.grace = grace
        self.kept = kept
        var limits = serveLimits
        limits.grace = grace
        serving = ServedPlugins(launcher: launcher, scratchDirectories: scratchDirectories, limits: limits)
    }

    /// Stops the processes of serving plugins, and waits for their exit; nothing is run afterwards.
    ///
    /// - Parameter isAtOnce: Whether they are sent SIGTERM, and not first end-of-file on their input.
    package func close(isAtOnce: Bool = false) {
        serving.close(isAtOnce: isAtOnce)
        scratchDirectories.removeInstanceDirectory()
    }

    /// Stops the processes of serving plugins that have been replaced or removed, once they have answered.
    package func retireOutdated() { serving.retireOutdated() }

    /// A program to run for an invocation.
    struct Call {
        /// The persistent processes of a plugin.
        struct Serving {
            var location: PathBytes
            /// The files of the plugin; a change of one replaces its processes.
            var files: [PathBytes]
            /// The maximum number of processes at once.
            var parallel: Int
            /// The number of requests that a process accepts at once, unless it specifies that itself.
            var concurrent: Int
        }

        var executable: PathBytes
        var arguments: [[UInt8]]
        /// The name for messages.
        var program: String
        var isIdempotent = true
        /// Whether it could be run when the rules were loaded; if it cannot be run now, it may be about to be replaced.
        var wasThere = true
        /// Whether standard output is a response and not log output.
        var answers: Bool
        /// The standard input.
        var input = StandardInput.request
        /// The schema that marks the secret parameters.
        var parameters: ParameterSchema?
        /// The plugin's name; nil for other programs.
        var plugin: String?
        /// How requests are served; nil for a program that is started for each request.
        var serving: Serving?
        /// The directory of a plugin, which it can read in a sandbox.
        var directory: PathBytes?
    }

    /// The maximum size of one request, in bytes.
    private static let requestLimit = 1 << 20

    /// Runs the program for all invocations, with a limited number per request, and fewer where a request gets too
    /// large.
    ///
    /// - Parameters:
    ///   - invocations: The invocations, in the order of their events.
    ///   - most: The maximum number of events in one request.
    ///   - call: Returns the program for a request, given its first invocation.
    /// - Returns: One outcome for each invocation, in order.
    func run(_ invocations: [Invocation], most: Int, _ call: (Invocation) -> Call) async -> [Outcome] {
        var outcomes: [Outcome] = []
        for request in Self.requests(of: invocations, most: most) { outcomes += await run(request, call) }
        return outcomes
    }

    /// Returns the invocations of each request.
    static func requests(of invocations: [Invocation], most: Int) -> [ArraySlice<Invocation>] {
        stride(from: 0, to: invocations.count, by: max(1, most)).map { invocations[$0...].prefix(max(1, most)) }
    }

    /// A request, and the line that is sent.
    typealias Request = (request: PluginRequest, input: [UInt8])

    /// The run of a program for a request, with everything that is needed until its end.
    ///
    /// It is an object, and the asynchronous functions are short, because their memory is held while the program runs.
    final class Run {
        let program: Call
        let invocations: ArraySlice<Invocation>
        let scratch: PathBytes
        /// Whether each file was there before; an earlier step may have moved it.
        let hadInput: [Bool]
        /// Nil for a program that receives none.
        fileprivate(set) var request: Request?
        private(set) var confinement = ProgramConfinement()

        init(_ program: Call, _ invocations: ArraySlice<Invocation>, scratch: PathBytes) {
            (self.program, self.invocations, self.scratch) = (program, invocations, scratch)
            hadInput = invocations.map { $0.expectsSettled || $0.hasInput }
        }

        var first: Invocation { invocations[invocations.startIndex] }

        func all(_ outcome: Outcome) -> [Outcome] { invocations.map { _ in outcome } }

        func confine() throws(Problem) {
            confinement = try ProgramConfinement(
                first.confinement, invocations, executable: program.executable, directory: program.directory,
                scratch: scratch)
        }

        /// The working directory: that of the rule, else the scratch directory for plugins and in a sandbox, and the
        /// directory of the rules file for other commands, as for the destinations of built-in handlers.
        var directory: ProgramPath {
            if let directory = first.directory { return directory }
            return ProgramPath(program.answers || confinement.grants != nil ? scratch : first.baseDirectory)
        }
    }

    private func run(_ invocations: ArraySlice<Invocation>, _ call: (Invocation) -> Call) async -> [Outcome] {
        let run: Run
        do throws(Outcome) {
            run = try begin(invocations, call)
        } catch {
            return invocations.map { _ in error }
        }
        let outcomes = await perform(run, call)
        return scratchDirectories.takeBack(run.scratch) ? outcomes : await keepFiles(of: run, outcomes)
    }

    /// Removes the scratch directory, or keeps it if it may contain the very files of the events.
    private func keepFiles(of run: Run, _ outcomes: [Outcome]) async -> [Outcome] {
        var outcomes = outcomes
        let lost = lostFiles(run, outcomes)
        if lost.contains(true), let place = keep(run.scratch, for: run.first.job.id) {
            fail(&outcomes, lost, place)
            guard place.problem == nil else { return outcomes }
        }
        remove(run.scratch, run.first.log)
        return outcomes
    }

    @inline(never) private func begin(
        _ invocations: ArraySlice<Invocation>, _ call: (Invocation) -> Call
    ) throws(Outcome) -> Run {
        let first = invocations[invocations.startIndex]
        let program = call(first)
        guard !first.stop.isRaised else { throw .interrupted("Alight stops") }
        if let problem = ownershipProblem(of: program, for: first) {
            throw .cannotStart(problem, mayPass: program.wasThere)
        }
        // For a program that is started for this request, execve(2) detects that.
        if program.serving != nil, let outcome = absence(of: program) { throw outcome }
        let scratch: PathBytes
        do throws(ScratchFailure) {
            scratch = try scratchDirectories.make(user: first.confinement.user, for: first.job.id)
        } catch {
            throw Outcome(.retry, error.message, code: "scratch")
        }
        return Run(program, invocations, scratch: scratch)
    }

    /// Returns for each event whether what the program left behind may be the very file that is gone, unless it reports
    /// that it removed that.
    @inline(never) private func lostFiles(_ run: Run, _ outcomes: [Outcome]) -> [Bool] {
        zip(run.hadInput, zip(run.invocations, outcomes)).map { hadInput, job in
            hadInput && !job.0.hasInput && !job.1.outputs.contains(job.0.job.event.path)
        }
    }

    @inline(never) private func fail(_ outcomes: inout [Outcome], _ lost: [Bool], _ left: KeptFiles.Place) {
        for index in outcomes.indices where lost[index] {
            outcomes[index].fail(
                "the file is gone, and the program left files in its scratch directory: see '\(left.place)'"
                    + (left.problem.map { ", which is removed when Alight stops, since they cannot be moved: \($0)" }
                        ?? ""))
        }
    }

    private enum Preparation {
        indirect case ends(Outcome)
        /// The request is too large.
        case isSplit
        case serves
        case starts
    }

    private func perform(_ run: Run, _ call: (Invocation) -> Call) async -> [Outcome] {
        switch prepare(run) {
        case .ends(let outcome): return run.all(outcome)
        case .isSplit: return await runHalves(of: run, call)
        case .serves: return explained(await serve(run), run.program, mayPass: false)
        case .starts:
            let log = ProgramLog(logger: run.first.log)
            return conclude(run, log, await start(run, log))
        }
    }

    private func runHalves(of run: Run, _ call: (Invocation) -> Call) async -> [Outcome] {
        let half = run.invocations.count / 2
        return await self.run(run.invocations.prefix(half), call) + self.run(run.invocations.dropFirst(half), call)
    }

    @inline(never) private func prepare(_ run: Run) -> Preparation {
        let program = run.program
        if program.input == .request {
            let request = PluginRequest(run.invocations, scratch: run.scratch)
            guard let input = try? request.encodedBytes() else {
                return .ends(Outcome(.failed, "the parameters can't be written as JSON", code: "bad-request"))
            }
            guard input.count <= Self.requestLimit else {
                guard run.invocations.count == 1 else { return .isSplit }
                let message = "the request has \(input.count) bytes, and 1 MiB is allowed"
                return .ends(Outcome(.failed, message, code: "bad-request"))
            }
            run.request = (request, input)
        }
        do throws(Problem) {
            try run.confine()
        } catch {
            return .ends(.cannotStart("\(program.program): \(error.message)", mayPass: false))
        }
        return program.serving != nil && run.request != nil ? .serves : .starts
    }

    /// Returns the table by which the outcomes of a run are found.
    func table(of run: Run) -> OutcomeTable {
        let (program, first) = (run.program, run.first)
        return OutcomeTable(
            program: program.program, isIdempotent: program.isIdempotent, answers: program.answers,
            directory: run.directory.path, timeout: first.timeout, limits: run.confinement.limits)
    }

    /// Replaces the outcomes of a program that could not be started, if it does not exist or may not be executed.
    ///
    /// - Parameters:
    ///   - outcomes: The outcomes of one request.
    ///   - program: The program that was to be run.
    ///   - mayPass: Whether its file was the cause and may be valid by now, as when it was being replaced at that time.
    /// - Returns: One outcome for each, in order.
    private func explained(_ outcomes: [Outcome], _ program: Call, mayPass: Bool) -> [Outcome] {
        outcomes.map { outcome in
            guard outcome.result == .failed, outcome.code == Outcome.cannotStartCode, outcome.process?.status == nil
            else { return outcome }
            if let missing = absence(of: program) { return missing }
            guard mayPass, program.wasThere else { return outcome }
            return .cannotStart(outcome.message, mayPass: true)
        }
    }

    /// Returns the outcome of an attempt whose program does not exist or may not be executed; nil when it can be run.
    ///
    /// A program is often replaced in two steps, so one that could be run before is retried, as often as the rule
    /// specifies.
    private func absence(of call: Call) -> Outcome? {
        ExecutableCheck.problem(with: call.executable)
            .map { .cannotStart("\(call.program): \($0.message)", mayPass: call.wasThere) }
    }

    /// Returns the reason why root must not run the program; nil when it may.
    ///
    /// Files may have changed since the rules were loaded.
    func ownershipProblem(of call: Call, for invocation: Invocation) -> String? {
        guard environment.isRoot, invocation.confinement.user.map({ $0.uid == 0 }) ?? true else { return nil }
        let variables = environment.variables(for: nil, adding: invocation.environment)
        let searchPath = variables.last { $0.name == "PATH" }?.value ?? []
        return ownership.problem(running: call.executable, call.arguments, searchPath: searchPath)
            .map { "\(call.program): \($0.message)" }
    }

    /// Runs the program once, in the environment of the first event.
    private func start(_ run: Run, _ log: ProgramLog) async -> ProgramResult {
        switch program(run, log) {
        case .success(let program): await program.run(run.first.permission)
        case .failure(let failure): ProgramResult(termination: failure.termination)
        }
    }

    @inline(never) private func program(_ run: Run, _ log: ProgramLog) -> Result<RunningProgram, LaunchFailure> {
        let progress = run.first.progress
        return launcher.prepare(command(run), stop: run.first.stop) { line in
            if case .progress(let fraction, let message) = log.take(line) { progress(fraction, message) }
        }
    }

    private func command(_ run: Run) -> Command {
        let (call, invocation) = (run.program, run.first)
        var command = Command(
            executable: call.executable, arguments: call.arguments,
            environment: variables(for: invocation, scratch: run.scratch),
            directory: run.directory, input: run.request?.input ?? [],
            output: call.answers ? .collected(limit: ResponseReader.limit) : .reported,
            timeout: invocation.timeout, grace: grace)
        command.entersDirectoryFirst = invocation.directory == nil
        command.hasInput = call.input == .request
        command.confinement = run.confinement
        command.whenOverdue = { [grace, log = invocation.log, timeout = invocation.timeout] in
            log.warning("\(OutcomeTable.overdue(call.program, after: timeout, grace: grace))")
        }
        return command
    }

    @inline(never) private func conclude(_ run: Run, _ log: ProgramLog, _ ended: ProgramResult) -> [Outcome] {
        log.finish(unread: ended.unread)
        let results = table(of: run).outcomes(of: ended, count: run.invocations.count)
        let outcomes = recorded(results, of: run.program, run.first.log, run.request, ended.termination)
        return explained(outcomes, run.program, mayPass: ended.miss?.mayPass(in: run.confinement) ?? false)
    }

    /// Logs the warnings about a reply, and returns the outcomes with the records of their process.
    ///
    /// `termination` is how the process terminated; nil for one that still runs.
    func recorded(
        _ results: (outcomes: [Outcome], notices: [String]), of call: Call, _ log: Logger, _ request: Request?,
        _ termination: ProgramResult.Termination?
    ) -> [Outcome] {
        for notice in results.notices { log.warning("\(call.program): in its reply, \(notice)") }
        let retained = request.map { RecordedRequest($0.request, sent: $0.input, schema: call.parameters) }
        var outcomes = results.outcomes
        for index in outcomes.indices {
            outcomes[index].process = ProcessDetails(termination, request: retained?.text(for: index))
        }
        return outcomes
    }

    private func keep(_ scratch: PathBytes, for job: JobID) -> (place: PathBytes, problem: String?)? {
        if let kept { return kept.take(scratch, of: job, launcher) }
        return KeptFiles.regularFiles(in: scratch).isEmpty ? nil : (scratch, "there is no state directory")
    }

    private func remove(_ scratch: PathBytes, _ log: Logger) {
        do throws(ScratchFailure) {
            try ScratchDirectories.remove(scratch)
        } catch {
            log.warning("\(error.message)")
        }
    }

    /// Returns the environment variables of the protocol, with exact bytes.
    private func variables(for invocation: Invocation, scratch: PathBytes) -> [(name: String, value: [UInt8])] {
        let job = invocation.job
        let event = job.event
        func text(_ text: String) -> [UInt8] { Array(text.utf8) }
        let variables = RequestVariables.list(
            id: text(job.id.description), attempt: text("\(job.attempt)"), rule: text(job.rule),
            event: text(event.kind.rawValue), path: event.path.bytes, from: event.from?.bytes ?? [],
            root: event.root.bytes, relative: Array(event.path.relative(to: event.root) ?? event.path.lastComponent),
            reason: text(job.previous?.message ?? "").filter { $0 != 0 }, scratch: scratch.bytes)
        return environment.variables(for: invocation.confinement.user, adding: invocation.environment)
            + [("TMPDIR", scratch.bytes)] + variables
    }
}

extension Outcome {
    /// Makes the outcome a failure, whatever the program reported.
    fileprivate mutating func fail(_ reason: String) {
        if result != .succeeded, !message.isEmpty { message = "\(message); \(reason)" } else { message = reason }
        (result, code, retryAfter, isInterrupted, isUncertain) = (.failed, "kept", nil, false, false)
    }
}

extension Invocation {
    /// Whether the file of the event is there; a directory entry that cannot be read counts as a file.
    fileprivate var hasInput: Bool {
        job.event.kind != .deleted && KernelFileSystem().stat(job.event.path) != .absent
    }
}

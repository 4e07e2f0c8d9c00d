import FileEvents
import Foundation
import Logging
import PluginProtocol
import Rules

/// Runs external programs for invocations: scratch folder, request, environment, log, outcome.
///
/// Plugins, `exec` and `shell` differ only in the command, and in whether what
/// they print is an answer.
package struct PluginHost: Sendable {
    let launcher: ProcessLauncher
    let scratchFolders: ScratchFolders
    let environment: ProgramEnvironment
    /// How long a program may take to end after SIGTERM.
    let grace: Duration

    package init(
        launcher: ProcessLauncher, scratchFolders: ScratchFolders, environment: ProgramEnvironment,
        grace: Duration = .seconds(10)
    ) {
        self.launcher = launcher
        self.scratchFolders = scratchFolders
        self.environment = environment
        self.grace = grace
    }

    /// A program to be run for an invocation.
    struct Call {
        var executable: PathBytes
        var arguments: [[UInt8]]
        /// The name for messages.
        var program: String
        var isIdempotent = true
        /// Whether standard output is a response, not log.
        var answers: Bool
    }

    func run(_ call: Call, for invocation: Invocation) -> Outcome {
        guard !invocation.stop.isRaised else { return .interrupted("Alight stops") }
        if let problem = ExecutableCheck.problem(with: call.executable) {
            return Outcome(.failed, "\(call.program): \(problem.message)", code: "cannot-start")
        }
        let scratch: PathBytes
        do throws(ScratchFailure) {
            scratch = try scratchFolders.make(for: invocation.job.id.description)
        } catch {
            return Outcome(.retry, error.message, code: "scratch")
        }
        defer { remove(scratch, invocation.log) }
        guard let request = try? PluginRequest(invocation, scratch: scratch).encoded() else {
            return Outcome(.failed, "the parameters can't be written as JSON", code: "bad-request")
        }
        guard request.count <= 1 << 20 else {
            return Outcome(.failed, "the request has \(request.count) bytes, and 1 MiB is allowed", code: "bad-request")
        }
        let command = Command(
            executable: call.executable, arguments: call.arguments,
            environment: variables(for: invocation, scratch: scratch), directory: scratch, input: Array(request),
            output: call.answers ? .collected(limit: 1 << 20) : .reported, timeout: invocation.timeout, grace: grace)
        var log = ProgramLog(logger: invocation.log)
        let ended = launcher.run(command, stop: invocation.stop) { report in
            switch report {
            case .line(let level, let text): log.add(level, text)
            case .progress(let fraction, let message): invocation.progress(fraction, message)
            }
        }
        log.finish()
        let table = OutcomeTable(
            program: call.program, isIdempotent: call.isIdempotent, answers: call.answers, folder: scratch,
            timeout: invocation.timeout)
        let (outcome, remarks) = table.outcome(of: ended)
        for remark in remarks { invocation.log.warning("\(call.program): in its reply, \(remark)") }
        return outcome
    }

    private func remove(_ scratch: PathBytes, _ log: Logger) {
        do throws(ScratchFailure) {
            try scratchFolders.remove(scratch)
        } catch {
            log.warning("\(error.message)")
        }
    }

    /// The variables of the protocol, with exact bytes.
    private func variables(for invocation: Invocation, scratch: PathBytes) -> [(name: String, value: [UInt8])] {
        let job = invocation.job
        let event = job.event
        func text(_ text: String) -> [UInt8] { Array(text.utf8) }
        return environment.variables + [
            ("TMPDIR", scratch.bytes), ("ALIGHT_PROTOCOL", text("\(ProtocolVersion.current)")),
            ("ALIGHT_ID", text(job.id.description)), ("ALIGHT_ATTEMPT", text("\(job.attempt)")),
            ("ALIGHT_RULE", text(job.rule)), ("ALIGHT_EVENT", text(event.kind.rawValue)),
            ("ALIGHT_PATH", event.path.bytes), ("ALIGHT_FROM", event.from?.bytes ?? []),
            ("ALIGHT_ROOT", event.root.bytes),
            ("ALIGHT_RELATIVE", Array(event.path.relative(to: event.root) ?? event.path.lastComponent)),
            ("ALIGHT_SCRATCH", scratch.bytes),
        ]
    }
}

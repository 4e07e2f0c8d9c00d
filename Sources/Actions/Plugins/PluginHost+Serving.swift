import ActionAPI
import Logging
import PersistentPlugins
import PluginProtocol
import Programs
import Rules
import System

extension PluginHost {
    /// Has a serving process answer the request, and says how that ended.
    func serve(_ run: Run) async -> [Outcome] {
        let (call, invocation) = (run.program, run.first)
        guard let serving = call.serving, var (request, input) = run.request else {
            preconditionFailure("a program that serves receives a request")
        }
        var command = Command(
            executable: call.executable, arguments: call.arguments,
            environment: environment.variables(for: nil, adding: invocation.environment) + [RequestVariables.version],
            directory: invocation.directory ?? "", timeout: .zero, grace: grace)
        command.confinement = run.confinement
        guard let plan = LaunchPlan(command, descriptorLimit: 0) else {
            return run.all(.cannotStart("\(call.program): \(LaunchFailure.containsNUL.reason)", mayPass: false))
        }
        guard await invocation.mayStart(),
            let plugin = self.serving.plugin(
                at: serving.location, running: plan.bytes, files: serving.files, parallel: serving.parallel)
        else { return run.all(.interrupted("Alight stops")) }
        let program = ServedProgram(title: call.program, command: command, concurrent: serving.concurrent)
        var isRetry = false
        while true {
            let sent = ServeRequest(
                to: program, id: request.id, attempt: request.attempt, timeout: invocation.timeout, input: input,
                deadline: request.deadline, logger: invocation.log, progress: invocation.progress)
            let reply = await withUnsafeContinuation { continuation in
                plugin.submit(sent, stop: invocation.stop, isRetry: isRetry) { continuation.resume(returning: $0) }
            }
            let log = sent.finish()
            // Once to another process, with `interrupted` set: most likely the request did not cause the death.
            if case .lost(let reason, _) = reply, call.isIdempotent, !isRetry, !invocation.stop.isRaised {
                invocation.log.notice("\(call.program) \(reason); the request is sent to another process")
                isRetry = true
                request.interrupted = true
                input = (try? request.encodedBytes()) ?? input
                continue
            }
            let results = table(of: run).outcomes(of: reply, log: log, count: request.events.count)
            let termination: ProgramResult.Termination? =
                if case .lost(_, let termination) = reply { termination } else { nil }
            return recorded(results, of: call, invocation.log, (request, input), termination)
        }
    }
}

extension OutcomeTable {
    /// Returns the outcomes of the events of a served request, in order, and warnings for the log.
    func outcomes(
        of reply: ServeRequest.Reply, log: HeadAndTail, count: Int
    ) -> (outcomes: [Outcome], notices: [String]) {
        func ended(
            _ termination: ProgramResult.Termination, _ output: [UInt8] = []
        ) -> (outcomes: [Outcome], notices: [String]) {
            var ended = ProgramResult(termination: termination)
            ended.output = output
            ended.log = log
            return outcomes(of: ended, count: count)
        }
        func all(_ outcome: Outcome) -> (outcomes: [Outcome], notices: [String]) {
            var outcome = outcome
            outcome.log = log.text
            return (Array(repeating: outcome, count: count), [])
        }
        switch reply {
        case .answered(let line, let cause):
            let (answers, notices) = ended(.exited(status: 0), line)
            guard let cause else { return (answers, notices) }
            // Work that is done counts even though the answer came late. Anything else is the answer to the
            // cancellation.
            let outcomes = zip(answers, ended(cause).outcomes).map { answer, instead in
                answer.result == .succeeded || answer.result == .skipped ? answer : instead
            }
            return (outcomes, notices)
        case .ended(let termination): return ended(termination)
        case .tooLarge:
            let message = "\(program) printed a line of more than 1 MiB and was stopped"
            return all(.uncertain(.failed, message, code: "too-large"))
        case .lost(let reason, _):
            return all(
                .uncertain(isIdempotent ? .retry : .failed, "\(program) \(reason)", code: Outcome.pluginDiedCode))
        case .refused(let reason, let mayPass):
            return all(.cannotStart("\(program) \(reason)", mayPass: mayPass))
        }
    }
}

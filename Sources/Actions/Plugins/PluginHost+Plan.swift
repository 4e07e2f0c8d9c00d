import ActionAPI
import PluginProtocol
import Programs
import Rules

// Plans: the programs that would be run, for a dry run.
extension PluginHost {
    /// Returns the plans of what ``run(_:most:_:)`` would do, and runs nothing.
    func plan(_ action: Action, _ invocations: [Invocation], most: Int, _ call: (Invocation) -> Call) -> [ActionPlan] {
        Self.requests(of: invocations, most: most).map { part in
            plan(action, part, part[part.startIndex], call(part[part.startIndex]))
        }
    }

    private func plan(
        _ action: Action, _ invocations: ArraySlice<Invocation>, _ first: Invocation, _ call: Call
    ) -> ActionPlan {
        if let problem = ExecutableCheck.problem(with: call.executable) {
            return .impossible("\(call.program): \(problem.message)", action, invocations)
        }
        if let problem = ownershipProblem(of: call, for: first) { return .impossible(problem, action, invocations) }
        var request = PluginRequest(invocations, scratch: scratchDirectories.example)
        request.dryRun = true
        let confinement: ProgramConfinement
        do throws(Problem) {
            confinement = try self.confinement(of: call, invocations, scratch: scratchDirectories.example)
        } catch {
            return .impossible("\(call.program): \(error.message)", action, invocations)
        }
        guard let line = try? request.encodedBytes() else {
            return .impossible("the parameters can't be written as JSON", code: "bad-request", action, invocations)
        }
        let shown = RecordedRequest(request, sent: line, schema: call.parameters).value
        let directory = directory(of: call, first, confinement, scratch: scratchDirectories.example).path
        let isShell = if case .shell = action.work { true } else { false }
        let program = ActionPlan.Program(
            plugin: call.plugin, isShell: isShell, isServed: call.serving != nil, executable: call.executable,
            arguments: call.arguments,
            parameters: call.parameters.flatMap { schema in
                shown.object?["with"].map { schema.resolvingDestinations(of: $0, from: first.baseDirectory) }
            } ?? (call.plugin == nil ? nil : shown.object?["with"]), request: shown,
            input: call.input, environment: first.environment,
            directory: directory == scratchDirectories.example ? nil : directory, confinement: confinement)
        return ActionPlan(.program(program), action, invocations)
    }
}

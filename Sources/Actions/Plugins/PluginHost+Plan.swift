import ActionAPI
import PluginProtocol
import Programs
import Rules

// Plans: the programs that would be run, for a dry run.
extension PluginHost {
    /// Returns the plans of what ``run(_:most:_:)`` would do, and runs nothing.
    func plan(_ action: Action, _ invocations: [Invocation], most: Int, _ call: (Invocation) -> Call) -> [ActionPlan] {
        Self.requests(of: invocations, most: most).map { plan(action, $0, call($0[$0.startIndex])) }
    }

    private func plan(_ action: Action, _ invocations: ArraySlice<Invocation>, _ call: Call) -> ActionPlan {
        let scratch = scratchDirectories.example
        let run = Run(call, invocations, scratch: scratch)
        if let problem = ExecutableCheck.problem(with: call.executable) {
            return .impossible("\(call.program): \(problem.message)", action, invocations)
        }
        if let problem = ownershipProblem(of: call, for: run.first) { return .impossible(problem, action, invocations) }
        var request = PluginRequest(invocations, scratch: scratch)
        request.dryRun = true
        do throws(Problem) {
            try run.confine()
        } catch {
            return .impossible("\(call.program): \(error.message)", action, invocations)
        }
        guard let line = try? request.encodedBytes() else {
            return .impossible("the parameters can't be written as JSON", code: "bad-request", action, invocations)
        }
        let shown = RecordedRequest(request, sent: line, schema: call.parameters).value
        let directory = run.directory.path
        let isShell = if case .shell = action.work { true } else { false }
        let program = ActionPlan.Program(
            plugin: call.plugin, isShell: isShell, isServed: call.serving != nil, executable: call.executable,
            arguments: call.arguments,
            parameters: call.parameters.flatMap { schema in
                shown.object?["with"].map { schema.resolvingDestinations(of: $0, from: run.first.baseDirectory) }
            } ?? (call.plugin == nil ? nil : shown.object?["with"]), request: shown,
            input: call.input, environment: run.first.environment,
            directory: directory == scratch ? nil : directory, confinement: run.confinement)
        return ActionPlan(.program(program), action, invocations)
    }
}

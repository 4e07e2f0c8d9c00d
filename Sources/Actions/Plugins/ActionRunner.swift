package import ActionAPI
import PluginProtocol
package import Rules

/// The runner of a rule's steps, and the only entry point from the engine to handlers, plugins and commands.
package struct ActionRunner: Sendable {
    let registry: HandlerRegistry
    let commands: CommandHandler

    /// - Parameters:
    ///   - registry: The registry of handlers and plugins.
    ///   - host: The host that runs the commands of `exec:` and `shell:`.
    package init(registry: HandlerRegistry, host: PluginHost) {
        self.registry = registry
        commands = CommandHandler(host: host)
    }

    /// Runs the action and returns its outcomes; blocks, as the handlers do.
    ///
    /// - Parameters:
    ///   - action: The action to run. Its parameters are expanded here, with the placeholder values of each invocation.
    ///   - invocations: One invocation per job; several in a batch. Their `parameters` are replaced.
    /// - Returns: The outcome of the attempt for each invocation, in order.
    package func run(_ action: Action, _ invocations: [Invocation]) -> [Outcome] {
        var invocations = invocations
        switch action.work {
        case .use(let reference, let with):
            switch handler(for: reference, filling: with, into: &invocations) {
            case .success(let handler):
                // A plugin waits as late as possible; see `PluginHost`.
                guard reference.location != nil || invocations.allSatisfy({ $0.mayStart() }) else {
                    return invocations.map { _ in .interrupted("Alight stops") }
                }
                return handler.run(invocations)
            case .failure(let problem):
                // The plugin was found when the rules were loaded, so it may be about to be replaced.
                let ending: Outcome.Ending = reference.location == nil ? .failed : .retry
                return invocations.map { _ in Outcome(ending, problem.message, code: Outcome.cannotStartCode) }
            }
        case .exec(let templates):
            for index in invocations.indices { invocations[index].parameters = .object([:]) }
            return commands.exec(templates, invocations)
        case .shell(let line):
            for index in invocations.indices { invocations[index].parameters = .object([:]) }
            return commands.shell(line, invocations)
        }
    }

    /// Whether an interrupted attempt has done its work; see ``Handler/isDone(_:)``.
    package func isDone(_ action: Action, _ invocation: Invocation) -> Bool {
        guard case .use(let reference, let with) = action.work, reference.location == nil else { return false }
        var invocations = [invocation]
        guard case .success(let handler) = handler(for: reference, filling: with, into: &invocations) else {
            return false
        }
        return handler.isDone(invocations[0])
    }

    /// Returns the handler, and fills in the action's parameters for each invocation.
    func handler(
        for reference: HandlerReference, filling with: ParameterTemplate, into invocations: inout [Invocation]
    ) -> Result<any Handler, HandlerProblem> {
        let handler = registry.handler(for: reference)
        let schema = (try? handler.get())?.summary.parameters
        for index in invocations.indices { invocations[index].fillIn(with, schema: schema) }
        return handler
    }
}

import FileEvents
import PluginProtocol
package import Rules

/// Does one step of a rule: the single door from the engine to handlers, plugins and commands.
package struct ActionRunner: Sendable {
    private let registry: HandlerRegistry
    private let commands: CommandHandler

    /// - Parameters:
    ///   - registry: Knows handlers and plugins.
    ///   - host: Runs the commands of `exec:` and `shell:`.
    package init(registry: HandlerRegistry, host: PluginHost) {
        self.registry = registry
        commands = CommandHandler(host: host)
    }

    /// Runs the action and says how it ended; blocks, as ``Handler/run(_:)`` does.
    ///
    /// - Parameters:
    ///   - action: What to do. Its parameters are expanded here, with the facts of the invocation.
    ///   - invocation: For which job; what it has in `parameters` is replaced.
    /// - Returns: How the attempt ended.
    package func run(_ action: Action, _ invocation: Invocation) -> Outcome {
        var invocation = invocation
        invocation.parameters = .object([:])
        switch action.work {
        case .use(let reference, let with):
            invocation.parameters = with.expanded(with: invocation.facts)
            switch registry.handler(for: reference) {
            case .success(let handler): return handler.run(invocation)
            case .failure(let problem): return Outcome(.failed, problem.message, code: "cannot-start")
            }
        case .exec(let templates): return commands.exec(templates, invocation)
        case .shell(let line): return commands.shell(line, invocation)
        }
    }
}

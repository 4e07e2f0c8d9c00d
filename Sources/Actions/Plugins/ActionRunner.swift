package import ActionAPI
import PluginProtocol
package import Rules

/// The runner of a rule's steps, and the only entry point from the engine to handlers, plugins and commands.
package struct ActionRunner: Sendable {
    private let registry: HandlerRegistry
    /// The host that runs the commands of `exec:` and `shell:`.
    var host: PluginHost { registry.host }

    package init(registry: HandlerRegistry) { self.registry = registry }

    /// Runs the action and returns its outcomes, on threads that may block, as some handlers do.
    ///
    /// - Parameters:
    ///   - action: The action to run. Its parameters are expanded here, with the placeholder values of each invocation.
    ///   - invocations: One invocation per job; several in a batch. Their `parameters` are replaced.
    /// - Returns: The outcome of the attempt for each invocation, in order.
    package func run(_ action: Action, _ invocations: [Invocation]) async -> [Outcome] {
        let work: Work
        do throws(Problem) {
            work = try prepare(action, invocations)
        } catch {
            return invocations.map { _ in .cannotStart(error.message, mayPass: Self.wasThere(action)) }
        }
        switch work {
        case .plugin(let handler, let invocations): return await handler.perform(invocations)
        case .builtIn(let handler, let invocations): return await run(handler, invocations)
        case .command(let call, let invocations):
            return await host.run(invocations, most: invocations.first?.batch ?? 1, call)
        }
    }

    private func run(_ handler: any Handler, _ invocations: [Invocation]) async -> [Outcome] {
        for invocation in invocations where await !invocation.mayStart() {
            return invocations.map { _ in .interrupted("Alight stops") }
        }
        return await handler.perform(invocations)
    }

    /// The runner of an action, and the invocations with its parameters.
    enum Work {
        /// It waits as late as possible until it may start; see `PluginHost`.
        case plugin(PluginHandler, [Invocation])
        case builtIn(any Handler, [Invocation])
        case command((Invocation) -> PluginHost.Call, [Invocation])
    }

    @inline(never) func prepare(_ action: Action, _ invocations: [Invocation]) throws(Problem) -> Work {
        var invocations = invocations
        switch action.work {
        case .use(let reference, let with):
            let handler = try handler(for: reference, filling: with, into: &invocations)
            if let plugin = handler as? PluginHandler { return .plugin(plugin, invocations) }
            return .builtIn(handler, invocations)
        case .exec, .shell:
            for index in invocations.indices { invocations[index].parameters = .object([:]) }
            return .command(try CommandCall.make(for: action, invocations.first), invocations)
        }
    }

    /// Returns whether the plugin or program was found when the rules were loaded, so that it may be about to be
    /// replaced: a program's name without placeholders was.
    static func wasThere(_ action: Action) -> Bool {
        switch action.work {
        case .use(let reference, _): reference.location != nil
        case .exec(let templates): templates.first?.literal != nil
        case .shell: true
        }
    }

    /// Whether an interrupted attempt has done its work; see ``Handler/isDone(_:)``.
    package func isDone(_ action: Action, _ invocation: Invocation) -> Bool {
        guard case .use(let reference, let with) = action.work, reference.location == nil else { return false }
        var invocations = [invocation]
        let handler = try? handler(for: reference, filling: with, into: &invocations)
        return handler?.isDone(invocations[0]) ?? false
    }

    /// Returns the handler, and fills in the action's parameters for each invocation.
    private func handler(
        for reference: HandlerReference, filling with: ParameterTemplate, into invocations: inout [Invocation]
    ) throws(Problem) -> any Handler {
        let handler = try registry.handler(for: reference).get()
        let schema = handler.summary.parameters
        for index in invocations.indices { invocations[index].fillIn(with, schema: schema) }
        return handler
    }
}

/// As an error, it is the outcome of an action that does not start.
extension Outcome: Error {
    /// Returns the outcome of an action that could not start: one whose cause may pass is retried, as often as the rule
    /// specifies.
    static func cannotStart(_ message: String, mayPass: Bool) -> Outcome {
        Outcome(mayPass ? .retry : .failed, message, code: cannotStartCode)
    }
}

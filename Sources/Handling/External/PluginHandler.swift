import FileEvents
import PluginProtocol
package import Rules

/// Runs a plugin, one process for each attempt (the verb `run`).
package struct PluginHandler: Handler {
    let plugin: Plugin
    let host: PluginHost

    package init(plugin: Plugin, host: PluginHost) {
        self.plugin = plugin
        self.host = host
    }

    package var summary: HandlerDescription { plugin.summary }

    package func run(_ invocation: Invocation) -> Outcome {
        guard let outcome = run([invocation]).first else { preconditionFailure("no outcome for an invocation") }
        return outcome
    }

    /// Gives it as many events at once as it has described that it takes.
    package func run(_ invocations: [Invocation]) -> [Outcome] {
        // Rules loaded long ago, and files can change.
        if host.environment.isRoot, let problem = ExecutableCheck.ownershipProblem(with: plugin.executable) {
            return invocations.map { _ in
                Outcome(.failed, "\(plugin.title): \(problem.message)", code: "cannot-start")
            }
        }
        var outcomes = invocations.map { problem(with: $0.job.event) }
        let open = outcomes.indices.filter { outcomes[$0] == nil }
        let most = min(invocations.first?.batch ?? 1, plugin.description.batch ?? 1)
        let ended = host.run(open.map { invocations[$0] }, most: most) { _ in
            PluginHost.Call(
                executable: plugin.executable, arguments: plugin.arguments + [Array("run".utf8)],
                program: plugin.title, isIdempotent: plugin.description.idempotent ?? true, answers: true,
                parameters: plugin.description.parameters)
        }
        for (index, outcome) in zip(open, ended) { outcomes[index] = outcome }
        return outcomes.compactMap(\.self)
    }

    private func problem(with event: FileEvent) -> Outcome? {
        guard plugin.description.rawPaths != true, [event.path, event.root, event.from].contains(where: isRaw) else {
            return nil
        }
        let message = "\(plugin.title) can't be given a name that is not UTF-8: \(event.path)"
        return Outcome(.failed, message, code: "name-not-utf8")
    }

    private func isRaw(_ path: PathBytes?) -> Bool { path.map { $0.text == nil } ?? false }
}

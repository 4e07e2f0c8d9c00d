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
        let event = invocation.job.event
        if plugin.description.rawPaths != true, [event.path, event.root, event.from].contains(where: isRaw) {
            let message = "\(plugin.title) can't be given a name that is not UTF-8: \(event.path)"
            return Outcome(.failed, message, code: "name-not-utf8")
        }
        // Rules loaded long ago, and files can change.
        if host.environment.isRoot, let problem = ExecutableCheck.ownershipProblem(with: plugin.executable) {
            return Outcome(.failed, "\(plugin.title): \(problem.message)", code: "cannot-start")
        }
        let call = PluginHost.Call(
            executable: plugin.executable, arguments: plugin.arguments + [Array("run".utf8)], program: plugin.title,
            isIdempotent: plugin.description.idempotent ?? true, answers: true)
        return host.run(call, for: invocation)
    }

    private func isRaw(_ path: PathBytes?) -> Bool { path.map { $0.text == nil } ?? false }
}

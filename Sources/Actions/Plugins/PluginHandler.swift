package import ActionAPI
import FileEvents
import PluginProtocol
package import Rules
import System

/// Runs a plugin: one process for each attempt (the verb `run`), or requests to a persistent process (`serve`).
package struct PluginHandler: Handler {
    let plugin: InstalledPlugin
    let host: PluginHost

    package init(plugin: InstalledPlugin, host: PluginHost) {
        self.plugin = plugin
        self.host = host
    }

    package var summary: HandlerDescription { plugin.summary }

    /// Runs the plugin for several events, with as many in one request as the rule and its description allow.
    package func perform(_ invocations: [Invocation]) async -> [Outcome] {
        let destinations = PluginDestinations(of: plugin.description)
        var invocations = invocations
        var outcomes = invocations.indices.map { index in
            problem(with: invocations[index].job.event) ?? destinations.claim(&invocations[index])
        }
        let open = outcomes.indices.filter { outcomes[$0] == nil }
        let ended = await host.run(open.map { invocations[$0] }, most: most(of: invocations), call(for:))
        for (index, outcome) in zip(open, ended) {
            destinations.release(invocations[index], outcome)
            outcomes[index] = outcome
        }
        return outcomes.compactMap(\.self)
    }

    /// Returns the plans of what ``perform(_:)`` would do.
    func plan(_ action: Action, _ invocations: [Invocation]) -> [ActionPlan] {
        let problems = invocations.compactMap { invocation in
            problem(with: invocation.job.event).map { ActionPlan(.impossible($0), action, [invocation]) }
        }
        let destinations = PluginDestinations(of: plugin.description)
        let open = invocations.filter { problem(with: $0.job.event) == nil }.map { invocation in
            var invocation = invocation
            _ = destinations.claim(&invocation)
            return invocation
        }
        return problems + host.plan(action, open, most: most(of: invocations), call(for:))
    }

    /// Returns the maximum number of events in one request.
    private func most(of invocations: [Invocation]) -> Int {
        min(invocations.first?.batch ?? 1, plugin.description.batch ?? 1)
    }

    /// Returns the call for an invocation: `serve` if the description has that mode and the processes of the rule do
    /// not differ from event to event, otherwise `run`.
    private func call(for invocation: Invocation) -> PluginHost.Call {
        let description = plugin.description
        let isServed = description.modes?.contains("serve") == true && invocation.hasFixedEnvironment
        let verb = isServed ? "serve" : "run"
        var call = PluginHost.Call(
            executable: plugin.executable, arguments: plugin.arguments + [Array(verb.utf8)], program: plugin.title,
            isIdempotent: description.idempotent ?? true, answers: true, parameters: description.parameters)
        call.plugin = description.name
        call.directory = plugin.directory
        guard isServed else { return call }
        // With an interpreter, the script. Other paths may be files that the plugin writes, and are not part of it.
        let script = plugin.arguments.first { $0.first != UInt8(ascii: "-") }
        let files = [script].compactMap(\.self).filter { $0.first == .slash }.map { PathBytes($0) }
        call.serving = PluginHost.Call.Serving(
            location: plugin.location, files: [plugin.executable, plugin.location.appending("plugin.yaml")] + files,
            parallel: description.parallel ?? 1, concurrent: description.concurrent ?? 1)
        return call
    }

    private func problem(with event: FileEvent) -> Outcome? {
        guard plugin.description.rawPaths != true,
            [event.path, event.root, event.from].contains(where: { $0.map { $0.text == nil } ?? false })
        else { return nil }
        let message = "\(plugin.title) does not accept a name that is not UTF-8: \(event.path)"
        return Outcome(.failed, message, code: "name-not-utf8")
    }
}

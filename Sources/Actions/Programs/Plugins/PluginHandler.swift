import FileEvents
import PluginProtocol
package import Rules
import System

/// Runs a plugin: one process for each attempt (the verb `run`), or requests to one that stays (`serve`).
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
        var outcomes = invocations.map { problem(with: $0.job.event) }
        let open = outcomes.indices.filter { outcomes[$0] == nil }
        let ended = host.run(open.map { invocations[$0] }, most: most(of: invocations), call(for:))
        for (index, outcome) in zip(open, ended) { outcomes[index] = outcome }
        return outcomes.compactMap(\.self)
    }

    /// Works out what ``run(_:)`` would do.
    func plan(_ action: Action, _ invocations: [Invocation]) -> [ActionPlan] {
        let problems = invocations.compactMap { invocation in
            problem(with: invocation.job.event).map { ActionPlan(.impossible($0), action, [invocation]) }
        }
        let open = invocations.filter { problem(with: $0.job.event) == nil }
        return problems + host.plan(action, open, most: most(of: invocations), call(for:))
    }

    /// Most events of one request.
    private func most(of invocations: [Invocation]) -> Int {
        min(invocations.first?.batch ?? 1, plugin.description.batch ?? 1)
    }

    /// Served is what says so of itself, for rules by which its processes don't differ from event to event.
    private func call(for invocation: Invocation) -> PluginHost.Call {
        let description = plugin.description
        let isServed = description.modes?.contains("serve") == true && invocation.hasFixedSurroundings
        let verb = isServed ? "serve" : "run"
        var call = PluginHost.Call(
            executable: plugin.executable, arguments: plugin.arguments + [Array(verb.utf8)], program: plugin.title,
            isIdempotent: description.idempotent ?? true, answers: true, parameters: description.parameters)
        call.plugin = description.name
        // A plugin of one file stands among others, which are none of its business.
        call.folder = plugin.location == plugin.executable ? nil : plugin.location
        guard isServed else { return call }
        // Behind an interpreter its script. Other paths may be of files that the plugin writes: they are no part of it.
        let script = plugin.arguments.first { $0.first != UInt8(ascii: "-") }
        let files = [script].compactMap(\.self).filter { $0.first == .slash }.map { PathBytes($0) }
        call.serving = PluginHost.Serving(
            place: plugin.location, files: [plugin.executable, plugin.location.appending("plugin.yaml")] + files,
            parallel: description.parallel ?? 1, concurrent: description.concurrent ?? 1)
        return call
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

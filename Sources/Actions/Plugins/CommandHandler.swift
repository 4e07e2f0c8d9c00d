import ActionAPI
import PluginProtocol
import Rules
import System

/// Runs the commands of `exec:` and `shell:`, programs that do not implement the plugin protocol.
///
/// They get the same request and environment as plugins. Their output is logged, and only their exit status determines
/// the outcome.
struct CommandHandler {
    let host: PluginHost

    /// Runs an executable; each template is one argument, whatever it expands to.
    ///
    /// In a batch the arguments are those of the first event.
    func exec(_ templates: [Template], _ invocations: [Invocation]) -> [Outcome] {
        switch call(templates, invocations.first) {
        case .success(let call): return host.run(invocations, most: invocations.first?.batch ?? 1, call)
        case .failure(let problem):
            // A name without placeholders was found when the rules were loaded.
            let ending: Outcome.Ending = templates.first?.literal == nil ? .failed : .retry
            return invocations.map { _ in Outcome(ending, problem.message, code: Outcome.cannotStartCode) }
        }
    }

    /// Returns the plans of what ``exec(_:_:)`` would do.
    func plan(_ action: Action, exec templates: [Template], _ invocations: [Invocation]) -> [ActionPlan] {
        switch call(templates, invocations.first) {
        case .success(let call): return host.plan(action, invocations, most: invocations.first?.batch ?? 1, call)
        case .failure(let problem):
            return [.impossible(problem.message, code: Outcome.cannotStartCode, action, invocations)]
        }
    }

    /// Returns the program for each request, or the reason why there is none for the first event.
    private func call(
        _ templates: [Template], _ invocation: Invocation?
    ) -> Result<(Invocation) -> PluginHost.Call, HandlerProblem> {
        guard let first = templates.first, let invocation else {
            return .failure(HandlerProblem(message: "'exec' has no elements", help: nil))
        }
        let name = first.expanded(with: invocation.facts)
        guard let executable = executable(name, isLiteral: first.literal != nil, from: invocation.folder) else {
            let message = "no program '\(PathBytes(name))' in \(ProgramEnvironment.searchPath)"
            return .failure(HandlerProblem(message: message, help: nil))
        }
        return .success { part in
            let facts = part.facts
            return PluginHost.Call(
                executable: executable, arguments: templates.dropFirst().map { $0.expanded(with: facts) },
                program: "'\(executable)'", wasThere: first.literal != nil, answers: false)
        }
    }

    /// Runs a shell command line; metadata is passed in environment variables, never as part of the line.
    func shell(_ line: String, _ invocations: [Invocation]) -> [Outcome] {
        host.run(invocations, most: invocations.first?.batch ?? 1) { _ in call(shell: line) }
    }

    /// Returns the plans of what ``shell(_:_:)`` would do.
    func plan(_ action: Action, shell line: String, _ invocations: [Invocation]) -> [ActionPlan] {
        host.plan(action, invocations, most: invocations.first?.batch ?? 1) { _ in call(shell: line) }
    }

    private func call(shell line: String) -> PluginHost.Call {
        PluginHost.Call(
            executable: "/bin/sh", arguments: [Array("-c".utf8), Array(line.utf8)], program: "the shell command",
            answers: false)
    }

    /// Returns the executable: a name with a slash is a path relative to the directory of the rules file, and one
    /// without is searched for.
    ///
    /// A name from a placeholder is never searched for: a file must not select the program by its name.
    private func executable(_ name: [UInt8], isLiteral: Bool, from folder: PathBytes) -> PathBytes? {
        if name.first == .slash { return PathBytes(name) }
        if name.contains(.slash) { return folder.appending(name).normalized }
        return isLiteral ? ExecutableCheck.find(String(decoding: name, as: UTF8.self)) : nil
    }
}

import FileEvents
import PluginProtocol
import Rules

/// Runs the commands of `exec:` and `shell:`, programs that know nothing of the protocol.
///
/// They get the same request and environment as plugins do; what they print is
/// log, and only their exit status speaks.
struct CommandHandler {
    let host: PluginHost

    /// Runs an executable; each template is one argument, whatever it expands to.
    ///
    /// In a batch the arguments are those of the first event.
    func exec(_ templates: [Template], _ invocations: [Invocation]) -> [Outcome] {
        func failure(_ message: String) -> [Outcome] {
            invocations.map { _ in Outcome(.failed, message, code: "cannot-start") }
        }
        guard let invocation = invocations.first else { return [] }
        guard let first = templates.first else { return failure("'exec' has no elements") }
        let name = first.expanded(with: invocation.facts)
        guard let executable = executable(name, isLiteral: first.literal != nil, from: invocation.folder) else {
            return failure("no program '\(PathBytes(name))' in \(ProgramEnvironment.searchPath)")
        }
        return host.run(invocations, most: invocation.batch ?? 1) { part in
            PluginHost.Call(
                executable: executable,
                arguments: templates.dropFirst().map { $0.expanded(with: part.facts) },
                program: "'\(executable)'", answers: false)
        }
    }

    /// Runs a line of shell; the facts come as environment variables, never as text of the line.
    func shell(_ line: String, _ invocations: [Invocation]) -> [Outcome] {
        host.run(invocations, most: invocations.first?.batch ?? 1) { _ in
            PluginHost.Call(
                executable: "/bin/sh", arguments: [Array("-c".utf8), Array(line.utf8)], program: "the shell command",
                answers: false)
        }
    }

    /// A name with a slash is a path, from the folder of the rules file; one without is searched for.
    ///
    /// A name that a placeholder brought is never searched for: a file must not pick the program by what it is called.
    private func executable(_ name: [UInt8], isLiteral: Bool, from folder: PathBytes) -> PathBytes? {
        if name.first == .slash { return PathBytes(name) }
        if name.contains(.slash) { return folder.appending(name).normalized }
        return isLiteral ? ExecutableCheck.find(String(decoding: name, as: UTF8.self)) : nil
    }
}

import ActionAPI
import Rules
import System

/// The commands of `exec:` and `shell:`, programs that do not implement the plugin protocol.
///
/// They get the same environment as plugins, and the request only if they read it. Their output is logged, and only their
/// exit status determines the outcome.
enum CommandCall {
    /// Returns the program for each request.
    ///
    /// In a batch the arguments of `exec` are those of the first event; each template is one argument, whatever it
    /// expands to. To the command line of `shell`, metadata is passed in environment variables, never as part of it.
    ///
    /// - Throws: The reason why there is none for the first event.
    static func make(
        for action: Action, _ invocation: Invocation?
    ) throws(Problem) -> (Invocation) -> PluginHost.Call {
        let input = invocation.map { action.input($0.input) } ?? .nothing
        if case .shell(let line) = action.work {
            let arguments = ["-c", line].map { Array($0.utf8) }
            return { _ in
                PluginHost.Call(
                    executable: "/bin/sh", arguments: arguments, program: "the shell command", answers: false,
                    input: input)
            }
        }
        guard case .exec(let templates) = action.work, let first = templates.first, let invocation else {
            throw Problem("'exec' has no elements")
        }
        let name = first.expanded(with: invocation.placeholders)
        let wasThere = ActionRunner.wasThere(action)
        guard let executable = executable(name, isLiteral: wasThere, from: invocation.baseDirectory) else {
            throw Problem("no program '\(PathBytes(name))' in \(Action.searchPath)")
        }
        return { part in
            let placeholders = part.placeholders
            return PluginHost.Call(
                executable: executable, arguments: templates.dropFirst().map { $0.expanded(with: placeholders) },
                program: "'\(executable)'", wasThere: wasThere, answers: false, input: input)
        }
    }

    /// Returns the executable: a name with a slash is a path relative to the directory of the rules file, and one
    /// without is searched for.
    ///
    /// A name from a placeholder is never searched for: a file must not select the program by its name.
    private static func executable(_ name: [UInt8], isLiteral: Bool, from directory: PathBytes) -> PathBytes? {
        if name.first == .slash { return PathBytes(name) }
        if name.contains(.slash) { return directory.appending(name).normalized }
        return isLiteral ? ExecutableCheck.find(String(decoding: name, as: UTF8.self)) : nil
    }
}

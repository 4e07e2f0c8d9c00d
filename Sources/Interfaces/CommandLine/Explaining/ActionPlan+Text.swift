import JSON
import Plugins
import Rules
import System

// An action plan as text and as JSON.
extension ActionPlan {
    /// One line: the command, quoted for a shell, or the handler with its parameters.
    var text: String {
        switch work {
        case .builtIn(let name, let parameters): return Self.named(name, parameters.json)
        case .program(let program):
            let command = ShellWord.line(program.command)
            guard let plugin = program.plugin else { return command }
            return "\(Self.named("plugin '\(Display.text(plugin))'", program.parameters)): \(command)"
        case .impossible(let outcome): return "cannot be run: \(Display.text(outcome.message))"
        }
    }

    private static func named(_ name: String, _ parameters: JSONValue?) -> String {
        guard let members = parameters?.object, !members.isEmpty else { return name }
        return "\(name) \(Display.text(members.line))"
    }

    /// The members of the JSON object.
    var members: [String: JSONValue] {
        switch work {
        case .builtIn(_, let parameters): return ["with": parameters.json]
        case .program(let program):
            var object: [String: JSONValue] = [
                "argv": .array(program.command.map { JSONValue(bytes: $0) }), "request": program.request,
            ]
            if let plugin = program.plugin { object["plugin"] = .string(plugin) }
            if program.isShell { object["shell"] = true }
            if program.isServed { object["served"] = true }
            if let directory = program.directory { object.add("directory", directory) }
            object.merge(program.confinement.members) { _, new in new }
            if !program.environment.isEmpty {
                let variables = program.environment.map { ($0.name, JSONValue(bytes: $0.value)) }
                object["env"] = .object(Dictionary(variables) { _, last in last })
            }
            return object
        case .impossible(let outcome):
            var object: [String: JSONValue] = ["error": .string(outcome.message)]
            if let code = outcome.code { object["code"] = .string(code) }
            return object
        }
    }
}

extension ActionPlan.Program {
    /// The executable and its arguments.
    var command: [[UInt8]] { [executable.bytes] + arguments }
}

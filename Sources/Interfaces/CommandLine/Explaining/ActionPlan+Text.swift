import FileEvents
import JSON
import Plugins
import Programs
import Rules
import System

// An action plan as text and as JSON.
extension ActionPlan {
    /// One line: the command, quoted for a shell, or the handler with its parameters.
    var text: String {
        switch work {
        case .builtIn(let name, let parameters): return Self.named(name, parameters)
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
        case .builtIn(_, let parameters): return ["with": parameters]
        case .program(let program):
            let variables = program.environment.map { ($0.name, JSONValue(bytes: $0.value)) }
            let members = [String: JSONValue]([
                "argv": program.command.map { JSONValue(bytes: $0) }, "request": program.request,
                "plugin": program.plugin, "shell": program.isShell ? true : nil,
                "served": program.isServed ? true : nil, "stdin": program.input.rawValue,
                "env": variables.isEmpty ? nil : Dictionary(variables) { $1 }, "directory": program.directory,
            ])
            return members.merging(program.confinement.members) { $1 }
        case .impossible(let outcome):
            return .init(["error": outcome.message, "code": outcome.code])
        }
    }
}

extension StandardInput {
    var words: String { self == .request ? "the request" : "none" }
}

extension ActionPlan.Program {
    /// The executable and its arguments.
    var command: [[UInt8]] { [executable.bytes] + arguments }
}

// The confinement of a program as text and as JSON: only the settings that differ from the default.
extension ProgramConfinement {
    /// The default confinement.
    private static let defaults = ProgramConfinement()

    var words: [String] {
        var words: [String] = []
        if let user {
            let home = "HOME is \(Display.path(user.home))"
            words.append("as user \(Display.text(user.text)) (\(user.uid):\(user.gid)), whose \(home)")
        }
        if umask != Self.defaults.umask { words.append("umask: \(umaskText)") }
        if let nice { words.append("nice: \(nice)") }
        if let ioPriority { words.append("ionice: \(ioPriority.text)") }
        if !limits.shown.isEmpty {
            words.append("limits: " + limits.shown.map { "\($0.name) \($0.value)" }.joined(separator: ", "))
        }
        var sandbox: [String] = []
        if grants != nil {
            for (word, paths) in [("read", paths(writable: false)), ("write", paths(writable: true))] {
                guard !paths.isEmpty else { continue }
                sandbox.append("\(word) \(paths.map { Display.path($0) }.joined(separator: ", "))")
            }
            sandbox.append("no files except the program's own, the system's and the one it runs for")
        }
        if !allowsNetwork { sandbox.append("no network") }
        if !sandbox.isEmpty {
            words.append("sandbox\(isRequired ? "" : ", if the kernel has one"): \(sandbox.joined(separator: "; "))")
        }
        return words
    }

    var members: [String: JSONValue] {
        let most = [String: JSONValue]([
            "cpu_ms": limits.cpu?.milliseconds, "memory": limits.memory, "files": limits.files,
            "processes": limits.processes, "file_size": limits.fileSize,
        ])
        func given(writable: Bool) -> [PathBytes]? { grants == nil ? nil : paths(writable: writable) }
        return .init([
            "run_as": user.map { user in
                JSONValue.members(["user": user.text, "uid": user.uid, "gid": user.gid, "groups": user.groups])
            }, "umask": umask == Self.defaults.umask ? nil : umaskText, "nice": nice,
            "ionice": ioPriority?.text, "limits": most.isEmpty ? nil : most,
            "sandbox": grants == nil && allowsNetwork
                ? nil
                : JSONValue.members([
                    "network": allowsNetwork, "required": isRequired, "read": given(writable: false),
                    "write": given(writable: true),
                ]),
        ])
    }

    private func paths(writable: Bool) -> [PathBytes] {
        var seen: Set<PathBytes> = []
        return given.filter { $0.access.contains(.write) == writable }.map(\.path).filter { seen.insert($0).inserted }
    }

    private var umaskText: String { String(umask, radix: 8, width: 3) }
}

extension ActionPlan {
    /// The standard input and the confinement of the plan's program, as text.
    var conditionWords: [String] {
        guard case .program(let program) = work else { return [] }
        let input = program.plugin == nil ? ["standard input: \(program.input.words)"] : []
        return input + program.confinement.words + unreadable(by: program.confinement.user)
    }

    /// Returns a message for each file that the user cannot read according to its mode bits.
    ///
    /// Only the program determines whether that matters.
    func unreadable(by user: ProgramUser?) -> [String] {
        guard let user else { return [] }
        return events.filter { $0.kind != .deleted && !user.canRead($0.snapshot) }.map { event in
            let mode = String(event.snapshot.mode & 0o7777, radix: 8, width: 4)
            return "user \(Display.text(user.text)) cannot read \(Display.path(event.path)): it belongs to "
                + "\(event.snapshot.uid):\(event.snapshot.gid), mode \(mode)"
        }
    }
}

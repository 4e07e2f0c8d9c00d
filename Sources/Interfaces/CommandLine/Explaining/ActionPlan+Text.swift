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

// The confinement of a program as text and as JSON: only the settings that differ from the default.
extension ProgramConfinement {
    /// The default confinement.
    private static let usual = ProgramConfinement()

    var words: [String] {
        var words: [String] = []
        if let user {
            let home = "HOME is \(Display.path(user.home))"
            words.append("as user \(Display.text(user.text)) (\(user.uid):\(user.gid)), whose \(home)")
        }
        if umask != Self.usual.umask { words.append("umask: \(umaskText)") }
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
        var object: [String: JSONValue] = [:]
        if let user {
            object["run_as"] = [
                "user": .string(user.text), "uid": .integer(Int64(user.uid)), "gid": .integer(Int64(user.gid)),
                "groups": .array(user.groups.map { .integer(Int64($0)) }),
            ]
        }
        if umask != Self.usual.umask { object["umask"] = .string(umaskText) }
        if let nice { object["nice"] = .integer(Int64(nice)) }
        if let ioPriority { object["ionice"] = .string(ioPriority.text) }
        var most: [String: JSONValue] = [:]
        if let cpu = limits.cpu { most["cpu_ms"] = .number(cpu / .milliseconds(1)) }
        if let memory = limits.memory { most["memory"] = .integer(Int64(memory)) }
        if let files = limits.files { most["files"] = .integer(Int64(files)) }
        if let processes = limits.processes { most["processes"] = .integer(Int64(processes)) }
        if let size = limits.fileSize { most["file_size"] = .integer(Int64(size)) }
        if !most.isEmpty { object["limits"] = .object(most) }
        if grants != nil || !allowsNetwork {
            var sandbox: [String: JSONValue] = ["network": .bool(allowsNetwork), "required": .bool(isRequired)]
            if grants != nil {
                sandbox["read"] = .array(paths(writable: false).map { JSONValue(bytes: $0.bytes) })
                sandbox["write"] = .array(paths(writable: true).map { JSONValue(bytes: $0.bytes) })
            }
            object["sandbox"] = .object(sandbox)
        }
        return object
    }

    private func paths(writable: Bool) -> [PathBytes] {
        var seen: Set<PathBytes> = []
        return given.filter { $0.access.contains(.write) == writable }.map(\.path).filter { seen.insert($0).inserted }
    }

    private var umaskText: String {
        let digits = String(umask, radix: 8)
        return String(repeating: "0", count: max(0, 3 - digits.count)) + digits
    }
}

extension ActionPlan {
    /// The confinement of the plan's program, as text.
    var confinementWords: [String] {
        guard case .program(let program) = work else { return [] }
        return program.confinement.words + unreadable(by: program.confinement.user)
    }

    /// Returns a message for each file that the user cannot read according to its mode bits.
    ///
    /// Only the program determines whether that matters.
    func unreadable(by user: ProgramUser?) -> [String] {
        guard let user else { return [] }
        return events.filter { $0.kind != .deleted && !user.canRead($0.snapshot) }.map { event in
            let mode = String(event.snapshot.mode & 0o7777, radix: 8)
            let zeros = String(repeating: "0", count: max(0, 4 - mode.count))
            return "user \(Display.text(user.text)) cannot read \(Display.path(event.path)): it belongs to "
                + "\(event.snapshot.uid):\(event.snapshot.gid), mode \(zeros)\(mode)"
        }
    }
}

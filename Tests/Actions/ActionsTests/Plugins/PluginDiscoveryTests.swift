import ActionAPI
import Foundation
import JSON
import PluginProtocol
import Plugins
import Rules
import System
import Testing

struct PluginDiscoveryTests {
    let stage: Stage
    var rules: PathBytes { stage.directory.path.appending("rules") }

    static let yaml: JSONValue = ["name": "thumbnail", "version": 1.2, "protocol": [1], "run": "./thumb"]

    init() throws {
        stage = try Stage()
        try stage.directory.directory("rules/plugins")
        try stage.directory.directory("plugins")
        try stage.directory.directory("search")
    }

    func find(_ name: String, yaml: [String: JSONValue] = [:]) -> Result<InstalledPlugin, Problem>? {
        stage.discovery(yaml).find(name, from: rules)
    }

    func problem(_ name: String, yaml: [String: JSONValue] = [:]) throws -> Problem {
        guard case .failure(let problem) = try #require(find(name, yaml: yaml)) else {
            throw Problem("found")
        }
        return problem
    }

    func addDirectory(_ name: String, in location: String = "plugins", executable: String) throws {
        try stage.directory.directory("\(location)/\(name)")
        try stage.directory.write("\(location)/\(name)/plugin.yaml", "", mode: 0o644)
        try stage.directory.write("\(location)/\(name)/\(executable)", "#!/bin/sh\n")
    }

    // MARK: - Locations

    @Test func `a directory with plugin.yaml is a plugin, and its command is relative to it`() throws {
        try addDirectory("thumbnail", executable: "thumb")
        let plugin = try #require(find("thumbnail", yaml: ["thumbnail": Self.yaml])).get()
        let directory = stage.directory.path.appending("plugins").appending("thumbnail")
        #expect(plugin.location == directory)
        #expect(plugin.executable == directory.appending("thumb"))
        #expect(plugin.arguments == [])
        #expect(plugin.description.version == "1.2")
    }

    @Test func `a command may start with a program and name files of the directory`() throws {
        try addDirectory("thumbnail", executable: "main.py")
        var yaml = Self.yaml.object ?? [:]
        yaml["run"] = ["python3", "-S", "./main.py", "--fast"]
        let plugin = try #require(find("thumbnail", yaml: ["thumbnail": .object(yaml)])).get()
        #expect(plugin.executable == "/usr/bin/python3")
        let script = "\(stage.directory.path)/plugins/thumbnail/main.py"
        #expect(plugin.arguments == ["-S", script, "--fast"].map { Array($0.utf8) })
    }

    @Test func `an executable describes itself`() throws {
        let answer = #"{"name":"sum","version":"2","protocol":[1],"raw_paths":true,"future":1}"#
        try stage.directory.write("search/sum", "#!/bin/sh\n[ $1 = describe ] && echo '\(answer)'\n")
        let plugin = try #require(find("sum")).get()
        #expect(plugin.description.rawPaths == true)
        #expect(plugin.notices == ["unknown key 'future' in its description"])
    }

    @Test func `the nearest location takes precedence`() throws {
        for place in ["search", "plugins", "rules/plugins"] {
            try addDirectory("thumbnail", in: place, executable: "thumb")
            let plugin = try #require(find("thumbnail", yaml: ["thumbnail": Self.yaml])).get()
            #expect(plugin.location == stage.directory.path.appending(place).appending("thumbnail"))
        }
    }

    @Test func `a name with a slash is a path relative to the directory of the rules file`() throws {
        let answer = #"{"name":"other","protocol":[1]}"#
        try stage.directory.write("sum.sh", "#!/bin/sh\necho '\(answer)'\n")
        #expect(try #require(find("../sum.sh")).get().description.name == "other")
        #expect(find("../nothing") == nil)
        #expect(find("nothing") == nil)
        #expect(find(".") == nil)
    }

    @Test func `names from all locations are listed once`() throws {
        try addDirectory("thumbnail", executable: "thumb")
        try addDirectory("thumbnail", in: "search", executable: "thumb")
        try stage.directory.write("search/sum", "#!/bin/sh\n")
        try stage.directory.write("search/README.md", "", mode: 0o644)
        try stage.directory.directory("search/empty")
        #expect(stage.discovery().names(from: rules) == ["sum", "thumbnail"])
    }

    @Test func `a plugin is asked for its description once, until it changes`() throws {
        let script = "#!/bin/sh\necho x >>'\(stage.directory.path)/count'\necho '{\"name\":\"sum\",\"protocol\":[1]}'\n"
        try stage.directory.write("search/sum", script)
        let discovery = stage.discovery()
        for _ in 0..<3 { _ = try #require(discovery.find("sum", from: rules)).get() }
        #expect(stage.directory.text(of: "count") == "x\n")
        try stage.directory.write("search/sum", script + "# changed\n")
        _ = try #require(discovery.find("sum", from: rules)).get()
        #expect(stage.directory.text(of: "count") == "x\nx\n")
        discovery.forget()
        _ = try #require(discovery.find("sum", from: rules)).get()
        #expect(stage.directory.text(of: "count") == "x\nx\nx\n")
    }

    // MARK: - Problems

    struct Case: Sendable, CustomTestStringConvertible {
        var change: [String: JSONValue]
        var message: String
        var help: String?
        var testDescription: String { message }
    }

    private static let extensionsHelp =
        "write a list such as [.jpg, .png], or { preset: { small: [.jpg] } }, beside 'x-alight: destination'"

    static let cases = [
        Case(change: ["name": .null], message: "the description has no 'name'", help: "add 'name:'"),
        Case(change: ["protocol": .null], message: "the description has no 'protocol'", help: "add 'protocol: [1]'"),
        Case(
            change: ["protocol": [2, 3]], message: "it uses version 2, 3 of the protocol, and this release supports 1",
            help: "update Alight, or use an older version of the plugin"),
        Case(change: ["batch": 0], message: "'batch' must be a whole number of at least 1"),
        Case(change: ["idempotent": "yes"], message: "'idempotent' must be true or false"),
        Case(
            change: ["events": ["creatde"]], message: "'events' has the unknown word 'creatde'",
            help: EventSpelling.help(for: "creatde")),
        Case(
            change: ["modes": ["serve"]], message: "it can't run once for each event: 'modes' has no 'run'",
            help: "add 'run' to 'modes'"),
        Case(
            change: ["timeout": "2"], message: "'timeout': the duration '2' has no unit", help: "write '2s' or '2m'"),
        Case(
            change: ["parameters": ["type": "object", "properties": ["to": ["contains": []]]]],
            message: "'parameters.properties.to' uses 'contains', which Alight can't check",
            help: "the keys are \(ParameterSchema.keys.joined(separator: ", "))"),
        Case(
            change: ["parameters": ["properties": ["n": ["type": "string", "x-alight": "output"]]]],
            message: "'parameters.properties.n.x-alight' is 'output'",
            help:
                "write 'destination' for the path of one file's output, or 'shared' for that of an output of many files"
        ),
        Case(
            change: ["parameters": ["properties": ["n": ["type": "integer", "default": "x"]]]],
            message: "'parameters.properties.n.default' doesn't fit: 'with' must be a whole number, not 'x'"),
        Case(
            change: ["parameters": ["properties": ["n": ["type": "integer", "examples": [3, "x"]]]]],
            message: "'parameters.properties.n.examples[1]' doesn't fit: 'with' must be a whole number, not 'x'"),
        Case(
            change: ["parameters": ["properties": ["n": ["type": "string", "x-alight-extensions": [".jpg"]]]]],
            message: "'parameters.properties.n.x-alight-extensions' can't be used", help: extensionsHelp),
        Case(
            change: [
                "parameters": ["properties": ["n": ["x-alight": "destination", "x-alight-extensions": ["jpg"]]]]
            ],
            message: "'parameters.properties.n.x-alight-extensions' can't be used", help: extensionsHelp),
        Case(
            change: ["parameters": ["properties": ["n": ["type": "int"]]]],
            message: "'parameters.properties.n.type' is 'int'",
            help: "the types are object, array, string, integer, number, boolean, null"),
        Case(
            change: ["parameters": ["properties": ["n": ["pattern": "("]]]],
            message: "'parameters.properties.n.pattern' is not a regular expression: (",
            help: "missing closing parenthesis"),
    ]

    @Test(arguments: cases)
    func `an invalid description is refused with the reason`(_ example: Case) throws {
        try addDirectory("thumbnail", executable: "thumb")
        let yaml = (Self.yaml.object ?? [:]).merging(example.change) { $1 }.filter { $0.value != .null }
        let problem = try problem("thumbnail", yaml: ["thumbnail": .object(yaml)])
        #expect(problem.message == "plugin 'thumbnail': \(example.message)")
        #expect(problem.help == example.help)
    }

    @Test func `a missing required program is reported with its package`() throws {
        try addDirectory("thumbnail", executable: "thumb")
        var yaml = Self.yaml.object ?? [:]
        yaml["requires"] = ["sh", "vips-nope (libvips-tools)"]
        let problem = try problem("thumbnail", yaml: ["thumbnail": .object(yaml)])
        #expect(
            problem.message
                == "plugin 'thumbnail' needs the program 'vips-nope', which is not in /usr/local/bin:/usr/bin:/bin")
        #expect(problem.help == "run: apt install libvips-tools")
    }

    @Test func `an executable that cannot describe itself is reported with the reason`() throws {
        try stage.directory.write("search/mute", "#!/bin/sh\necho no such verb >&2; exit 64\n")
        #expect(try problem("mute").message == "plugin 'mute': it can't describe itself: no such verb")
        try stage.directory.write("search/chatty", "#!/bin/sh\necho hello\n")
        #expect(
            try problem("chatty").message
                == "plugin 'chatty': its output for 'describe' is not JSON, from byte 0 on")
    }

    @Test func `a plugin that is not executable is reported with the remedy`() throws {
        try addDirectory("thumbnail", executable: "thumb")
        try stage.directory.write("plugins/thumbnail/thumb", "#!/bin/sh\n", mode: 0o644)
        let problem = try problem("thumbnail", yaml: ["thumbnail": Self.yaml])
        let path = "\(stage.directory.path)/plugins/thumbnail/thumb"
        #expect(problem.message == "plugin 'thumbnail': '\(path)' is not executable")
        #expect(problem.help == "run: chmod +x '\(path)'")
    }

    @Test func `a file with the right name that is not a plugin is reported with what it lacks`() throws {
        let file = try stage.directory.write("search/sum", "#!/bin/sh\n", mode: 0o644)
        #expect(
            try problem("sum")
                == Problem(
                    "'\(file)' is not executable", help: "run: chmod +x '\(file)'"))
        let empty = try stage.directory.directory("plugins/empty")
        #expect(try problem("empty").message == "'\(empty)' has neither a plugin.yaml nor an executable 'empty'")
    }

    @Test func `a plugin under another name is refused`() throws {
        try stage.directory.write("search/sum", "#!/bin/sh\necho '{\"name\":\"product\",\"protocol\":[1]}'\n")
        #expect(try problem("sum").message.hasSuffix("has the name 'product' in its description"))
    }

    @Test(.enabled(if: geteuid() == 0, "only root refuses"))
    func `as root, a plugin in a directory that others can change is refused, with the remedy`() throws {
        try addDirectory("thumbnail", executable: "thumb")
        let directory = try stage.directory.directory("plugins/thumbnail", mode: 0o777)
        let open = try problem("thumbnail", yaml: ["thumbnail": Self.yaml])
        #expect(
            open.message == "plugin 'thumbnail': '\(directory)' can be changed by others than root (mode 0777)")
        #expect(open.help == "run: chmod go-w '\(directory)'")
        try stage.directory.directory("plugins/thumbnail")
        #expect(directory.withCString { chown($0, 1000, 1000) } == 0)
        #expect(
            try problem("thumbnail", yaml: ["thumbnail": Self.yaml]).help == "run: chown root:root '\(directory)'")
    }

    @Test(
        .enabled(if: geteuid() == 0, "only root refuses"),
        arguments: ["./main", "python3 -S ./main", "java -jar ./main"])
    func `as root, each file that 'run' names is checked, with its interpreter`(command: String) throws {
        try addDirectory("thumbnail", executable: "main")
        try stage.directory.write("java", "#!/bin/sh\n")
        let tool = try stage.directory.write("tool", "#!/bin/sh\n")
        let script = try stage.directory.write("plugins/thumbnail/main", "#!\(tool)\n")
        var yaml = Self.yaml.object ?? [:]
        let words = command.replacing("java", with: "\(stage.directory.path)/java").split(separator: " ")
        yaml["run"] = .array(words.map { .string(String($0)) })
        func help() throws -> String? {
            let found = find("thumbnail", yaml: ["thumbnail": .object(yaml)])
            if case .failure(let problem)? = found { return problem.help } else { return nil }
        }
        #expect(try help() == nil)
        try #require(chmod(script.description, 0o757) == 0)
        #expect(try help() == "run: chmod go-w '\(script)'")
        guard command == "./main" else { return }
        try #require(chmod(script.description, 0o755) == 0 && chmod(tool.description, 0o757) == 0)
        #expect(try help() == "run: chmod go-w '\(tool)'")
    }

    // MARK: - The registry

    @Test func `the registry prefers built-in handlers to plugins, and suggests names`() throws {
        try addDirectory("thumbnail", executable: "thumb")
        let registry = HandlerRegistry(
            builtIn: [StubHandler(name: "copy"), StubHandler(name: "move")],
            discovery: stage.discovery(["thumbnail": Self.yaml]))
        #expect(try registry.find("copy", from: rules).get().reference == HandlerReference(name: "copy"))
        let found = try registry.find("thumbnail", from: rules).get()
        #expect(found.reference.location != nil)
        #expect(try registry.handler(for: found.reference).get() is PluginHandler)
        #expect(try registry.handler(for: HandlerReference(name: "move")).get() is StubHandler)
        guard case .failure(let near) = registry.find("thumbnial", from: rules) else {
            Issue.record("found")
            return
        }
        #expect(near.message == "no handler or plugin 'thumbnial'")
        #expect(near.help == "write 'thumbnail'; the names are copy, move, thumbnail")
        guard case .failure(let far) = registry.find("transmogrify", from: rules) else {
            Issue.record("found")
            return
        }
        #expect(
            far.help?.hasPrefix("built-in handlers: copy, move; plugins are searched for in '\(rules)/plugins'") == true
        )
    }

    private struct StubHandler: BlockingHandler {
        let name: String
        var summary: HandlerDescription {
            HandlerDescription(reference: HandlerReference(name: name), parameters: nil)
        }
        func run(_ invocation: Invocation) -> Outcome { Outcome(.succeeded, "\(invocation.parameters)") }
    }

    @Test func `the runner expands the parameters for a handler`() throws {
        let registry = HandlerRegistry(
            builtIn: [StubHandler(name: "copy")], discovery: stage.discovery())
        let to = try #require(Template("${stem}.webp"))
        let action = Action(
            .use(HandlerReference(name: "copy"), with: .object(["to": .text(to)])),
            location: SourcePosition(file: "r", line: 1, column: 1))
        let outcome = ActionRunner(registry: registry).run(action, stage.invocation())
        #expect(outcome.message == "\(Parameter.object(["to": .text(Array("a b.webp".utf8))]))")
    }
}

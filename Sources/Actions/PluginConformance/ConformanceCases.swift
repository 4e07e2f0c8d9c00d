import ActionAPI
import FileEvents
import Foundation
import Glibc
package import JSON
import PluginProtocol
import Plugins
import Programs
import Rules
package import System

/// A requirement of the protocol, and the verdict on it.
package struct ConformanceCheck: Sendable, Hashable {
    package struct Verdict: Sendable, Hashable {
        package enum Word: String, Sendable { case ok, failed, skipped }

        package var word: Word
        /// A detail of a check that passed, or the reason why it failed or was skipped; the remedy, if it failed.
        package var message, help: String?

        static func passed(_ seen: String? = nil) -> Verdict { Verdict(word: .ok, message: seen) }
        package static func failed(_ why: String, help: String) -> Self {
            Self(word: .failed, message: why, help: help)
        }
        static func skipped(_ why: String) -> Verdict { Verdict(word: .skipped, message: why) }
    }

    /// The name for programs, such as `hostile-name`, and the requirement for users.
    package var name, title: String
    package var verdict: Verdict

    package init(_ name: String, _ title: String, _ verdict: Verdict) {
        (self.name, self.title, self.verdict) = (name, title, verdict)
    }
}

/// The options of a conformance test.
package struct ConformanceOptions: Sendable {
    /// Parameters that replace those of `request.json`; `@SCRATCH@` in a string stands for the directory with the
    /// files.
    package var parameters: [String: JSONValue] = [:]
    /// A file that the plugin can work with; by default that of `request.json`, or else a text file.
    package var sample: PathBytes?
    /// How long one answer may take; nil for the timeout in the description, or else 60 s.
    package var timeout: Duration?
    /// How long the plugin may continue after SIGTERM.
    package var grace: Duration = .seconds(10)

    package init() {}
}

/// Makes the cases of a conformance test: directories, files, requests and commands.
struct ConformanceCases {
    /// The directories of one case.
    struct Stage {
        /// The directory that `@SCRATCH@` stands for; the watched directory of the events.
        let files, scratch, home: PathBytes

        /// Replaces `@SCRATCH@` in strings.
        func filled(_ value: JSONValue) -> JSONValue {
            JSONValue(json: value.line.replacing(ConformanceCases.token, with: files.description).utf8) ?? value
        }
    }

    private static let token = "@SCRATCH@"
    private let files = FileManager.default

    let plugin: InstalledPlugin
    let options: ConformanceOptions
    let environment: ProgramEnvironment
    /// The directory of all cases.
    let base: PathBytes
    /// The content of `request.json`.
    private(set) var shownRequest: JSONValue?
    private var sample: (content: [UInt8], suffix: String) = (Array("one line\nand another\n".utf8), ".txt")

    /// Reads `request.json` and the sample.
    ///
    /// - Throws: The reason why the given sample cannot be read.
    init(
        of plugin: InstalledPlugin, _ options: ConformanceOptions, _ environment: ProgramEnvironment,
        in base: PathBytes
    ) throws(Problem) {
        (self.plugin, self.options, self.environment, self.base) = (plugin, options, environment, base)
        shownRequest = json("request.json")
        let shown = shownRequest?.object?["events"]?.array?.first?.object?["path"]?.string
        var path = options.sample
        if path == nil, let shown, shown.hasPrefix("\(Self.token)/"), let testdata {
            path = testdata.appending(String(shown.dropFirst(Self.token.count + 1)))
        }
        guard let path else { return }
        if let content = files.contents(atPath: path.description) {
            let name = String(decoding: path.lastComponent, as: UTF8.self)
            sample = (Array(content), name.lastIndex(of: ".").map { String(name[$0...]) } ?? "")
        } else if options.sample != nil {
            throw Problem("cannot read '\(path)'", help: "name an existing file with --sample")
        }
    }

    var timeout: Duration {
        options.timeout ?? plugin.description.timeout.flatMap { try? DurationText.parse($0) } ?? .seconds(60)
    }

    private var testdata: PathBytes? { plugin.directory?.appending("testdata") }

    /// Returns the JSON in a file beside `plugin.yaml`.
    func json(_ name: String) -> JSONValue? {
        (plugin.directory?.appending(name)).flatMap { files.contents(atPath: $0.description) }.flatMap {
            JSONValue(json: $0)
        }
    }

    /// Why the parameters do not fit the schema; nil if they do.
    var unfitParameters: Problem? {
        guard let schema = plugin.description.parameters,
            let problem = ParameterCheck.problems(in: ParameterTemplate(parameters), schema: schema).first
        else { return nil }
        let missing = schema.required?.first { parameters.object?[$0] == nil }
        let place = "give it with --with \(missing ?? "NAME")=VALUE, or in 'with' of a request.json beside plugin.yaml"
        return Problem(problem.message, help: missing == nil ? problem.help ?? place : place)
    }

    /// Creates the directories of a case.
    func stage(_ name: String) -> Stage {
        let directory = base.appending(name)
        let stage = Stage(
            files: directory.appending("files"), scratch: directory.appending("scratch"),
            home: directory.appending("home"))
        for path in [stage.scratch, stage.home, stage.files] {
            try? files.createDirectory(atPath: path.description, withIntermediateDirectories: true)
            // The files are copied as a whole, if there are some.
            if path == stage.home, let testdata {
                try? files.copyItem(atPath: testdata.description, toPath: stage.files.description)
            }
        }
        return stage
    }

    /// The parameters, with defaults.
    private var parameters: JSONValue {
        var members = shownRequest?.object?["with"]?.object ?? [:]
        members.merge((plugin.description.parameters?.properties ?? [:]).compactMapValues(\.default)) { own, _ in own }
        members.merge(options.parameters) { _, given in given }
        return .object(members)
    }

    /// Writes a file, and creates a request for it.
    ///
    /// - Parameters:
    ///   - name: The name of the file without the suffix of the sample.
    ///   - stage: The directories of the case.
    ///   - isEmpty: Whether the file has no content.
    /// - Returns: The members of the request, and the path of the file.
    func request(
        for name: [UInt8], in stage: Stage, isEmpty: Bool = false
    ) -> (members: [String: JSONValue], path: PathBytes) {
        let path = stage.files.appending(name + Array(sample.suffix.utf8))
        if plugin.description.types == ["directory"] {
            _ = path.withCString { mkdir($0, 0o755) }
        } else if let stream = path.withCString({ fopen($0, "we") }) {
            fwrite(sample.content, 1, isEmpty ? 0 : sample.content.count, stream)
            fclose(stream)
        }
        let kind = plugin.description.events?.compactMap(EventKind.init).first ?? .created
        let event = FileEvent(
            kind: kind, path: path, root: stage.files,
            from: kind == .moved ? stage.files.appending("before it was moved\(sample.suffix)") : nil,
            snapshot: KernelFileSystem().stat(path).snapshot ?? .unseen, time: DiskProbe.now())
        let request = PluginRequest(
            id: JobID(now: DiskProbe.now()).description, attempt: 1, maxAttempts: 5, interrupted: false,
            deadline: DiskProbe.now().advanced(by: timeout).description,
            rule: RuleReference(name: "conformance", file: stage.files.appending("rules.yaml").description, line: 1),
            with: stage.filled(parameters), scratch: stage.scratch.description, events: [PluginEvent(event)])
        return (request.json.object ?? [:], path)
    }

    /// Returns the command that calls a verb, with the environment that the protocol specifies for the request.
    func command(_ verb: String, in stage: Stage, input: [UInt8], for request: [String: JSONValue] = [:]) -> Command {
        var own = environment
        own.home = stage.home
        let event = request["events"]?.array?.first?.object ?? [:]
        func bytes(_ name: String, in object: [String: JSONValue]?) -> [UInt8] { object?.bytes(name) ?? [] }
        let variables = RequestVariables.list(
            id: bytes("id", in: request), attempt: Array("1".utf8), rule: bytes("name", in: request["rule"]?.object),
            event: bytes("event", in: event), path: bytes("path", in: event), from: bytes("from", in: event),
            root: bytes("root", in: event), relative: bytes("relative", in: event), reason: [],
            scratch: stage.scratch.bytes)
        return Command(
            executable: plugin.executable, arguments: plugin.arguments + [Array(verb.utf8)],
            environment: own.variables + [("TMPDIR", stage.scratch.bytes)] + variables,
            directory: ProgramPath(stage.scratch), input: input, timeout: timeout, grace: options.grace)
    }
}

extension [String: JSONValue] {
    /// The members as one line of JSON, with its newline.
    var input: [UInt8] { lineBytes + [UInt8(ascii: "\n")] }
}

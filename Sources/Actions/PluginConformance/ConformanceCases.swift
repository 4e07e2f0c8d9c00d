import ActionAPI
import FileEvents
import Foundation
import JSON
import PluginProtocol
import Plugins
import Programs
import Rules
import System

/// Makes the cases of a conformance test: directories, files, requests and commands.
final class ConformanceCases {
    let plugin: InstalledPlugin
    let options: ConformanceOptions
    let launcher: ProcessLauncher
    private let hostEnvironment: ProgramEnvironment
    /// The directory of all cases.
    private let base: PathBytes
    /// The content of `request.json`.
    private(set) var shownRequest: JSONValue?
    private(set) var sample: (content: [UInt8], suffix: String) = (Array("one line\nand another\n".utf8), ".txt")
    private var count = 0

    init(
        of plugin: InstalledPlugin, _ options: ConformanceOptions, _ launcher: ProcessLauncher,
        _ hostEnvironment: ProgramEnvironment, in base: PathBytes
    ) {
        self.plugin = plugin
        self.options = options
        self.launcher = launcher
        self.hostEnvironment = hostEnvironment
        self.base = base
    }

    /// Reads `request.json` and the sample.
    ///
    /// - Throws: The reason why the given sample cannot be read.
    func read() throws(HandlerProblem) {
        if let directory = plugin.directory, let data = Self.content(of: directory.appending("request.json")) {
            shownRequest = JSONValue(json: data)
        }
        if let path = options.sample {
            guard let content = Self.content(of: path) else {
                throw HandlerProblem(message: "cannot read '\(path)'", help: "name an existing file with --sample")
            }
            sample = (content, Self.suffix(of: path))
        } else if let text = shownRequest?.object?["events"]?.array?.first?.object?["path"]?.string,
            text.hasPrefix("\(ConformanceToken.text)/"), let testdata
        {
            let path = testdata.appending(String(text.dropFirst(ConformanceToken.text.count + 1)))
            if let content = Self.content(of: path) { sample = (content, Self.suffix(of: path)) }
        }
    }

    var timeout: Duration {
        options.timeout ?? plugin.description.timeout.flatMap { try? DurationText.parse($0) } ?? .seconds(60)
    }

    /// Whether the plugin accepts directories and no files.
    var takesDirectories: Bool {
        plugin.description.types.map { !$0.contains("file") && !$0.contains("any") } ?? false
    }

    /// The directory whose content `request.json` works with.
    var testdata: PathBytes? {
        guard let directory = plugin.directory?.appending("testdata"),
            case .present(let snapshot) = KernelFileSystem().stat(directory)
        else { return nil }
        return snapshot.type == .directory ? directory : nil
    }

    func stage(_ name: String) throws(HandlerProblem) -> ConformanceStage {
        count += 1
        return try ConformanceStage(in: base, name: "\(count)-\(name)", testdata: testdata)
    }

    /// Returns the parameters for a case, with defaults.
    func parameters(in stage: ConformanceStage) -> JSONValue {
        var members = shownRequest?.object?["with"]?.object ?? [:]
        members.merge((plugin.description.parameters?.properties ?? [:]).compactMapValues(\.default)) { own, _ in own }
        members.merge(options.parameters) { _, given in given }
        return ConformanceToken.replaced(in: .object(members), by: stage.files)
    }

    /// The first kind of event that the plugin accepts, of those that a file can have.
    private var kind: EventKind {
        let kinds: [EventKind] = [.created, .modified, .moved, .attributes, .deleted]
        return kinds.first { plugin.description.events?.contains($0.rawValue) ?? true } ?? .created
    }

    /// Writes a file, and creates a request for it.
    ///
    /// - Parameters:
    ///   - fileName: The name of the file without the suffix of the sample.
    ///   - stage: The directories of the case.
    ///   - content: The content of the file; nil for that of the sample.
    /// - Returns: The members of the request.
    /// - Throws: The reason why the file cannot be written.
    func request(
        for fileName: some Collection<UInt8>, in stage: ConformanceStage, content: [UInt8]? = nil
    ) throws(HandlerProblem) -> [String: JSONValue] {
        let path = stage.files.appending(Array(fileName) + Array(sample.suffix.utf8))
        stage.write(content ?? sample.content, to: path, asDirectory: takesDirectories)
        guard case .present(let snapshot) = KernelFileSystem().stat(path) else {
            throw HandlerProblem(message: "cannot write '\(path)'", help: "set TMPDIR to another directory")
        }
        let from = kind == .moved ? stage.files.appending("before it was moved\(sample.suffix)") : nil
        let event = FileEvent(
            kind: kind, path: path, root: stage.files, from: from, snapshot: snapshot, time: DiskProbe.now())
        let request = PluginRequest(
            id: JobID(now: DiskProbe.now()).description, attempt: 1, maxAttempts: 5, interrupted: false,
            deadline: DiskProbe.now().advanced(by: timeout).description,
            rule: RuleReference(name: "conformance", file: stage.files.appending("rules.yaml").description, line: 1),
            with: parameters(in: stage), scratch: stage.scratch.description, events: [PluginEvent(event)])
        return request.json.object ?? [:]
    }

    /// Returns the command that calls a verb.
    func command(
        _ verb: String, in stage: ConformanceStage, input: [UInt8] = [], for request: [String: JSONValue]? = nil
    ) -> Command {
        Command(
            executable: plugin.executable, arguments: plugin.arguments + [Array(verb.utf8)],
            environment: stage.environment(hostEnvironment, request: request),
            directory: ProgramPath(stage.scratch), input: input, timeout: timeout, grace: options.grace)
    }

    func reply(to command: Command, title: String) -> ConformanceReply {
        ConformanceReply(
            title: title, ended: launcher.run(command, stop: StopSignal()), directory: command.directory.path,
            limit: timeout)
    }

    /// Returns the contents of the directories that a call must not change.
    func record(of stage: ConformanceStage) -> TreeRecord {
        TreeRecord([stage.files, stage.home] + (plugin.directory.map { [$0] } ?? []), without: [stage.scratch])
    }

    static func content(of path: PathBytes) -> [UInt8]? {
        FileManager.default.contents(atPath: path.description).map { Array($0) }
    }

    private static func suffix(of path: PathBytes) -> String {
        let name = String(decoding: path.lastComponent, as: UTF8.self)
        return name.lastIndex(of: ".").map { String(name[$0...]) } ?? ""
    }
}

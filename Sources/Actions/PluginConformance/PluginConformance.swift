package import ActionAPI
import FileEvents
import Foundation
import JSON
import PluginProtocol
package import Plugins
package import Programs
package import Rules
import Settling
package import System

/// Tests whether a plugin conforms to the protocol, by calling it as Alight does.
///
/// Every case has directories of its own, in one that is removed at the end.
package final class PluginConformance {
    let plugin: InstalledPlugin
    let options: ConformanceOptions
    let launcher: ProcessLauncher
    let surroundings: ProgramEnvironment
    /// The directory of all cases.
    let base: PathBytes
    private let report: (ConformanceCheck) -> Void
    private var failures = 0
    /// Whether the plugin does its work for a plain name, without which little else can be judged.
    var isSound = false
    /// The replies to events of files, for the checks that inspect all replies.
    var replies: [ConformanceReply] = []
    /// The content of `request.json`.
    private(set) var shownRequest: JSONValue?
    private(set) var sample: (content: [UInt8], suffix: String) = (Array("one line\nand another\n".utf8), ".txt")
    private var cases = 0

    /// - Parameters:
    ///   - plugin: The plugin to test.
    ///   - options: Parameters, a sample, limits.
    ///   - launcher: Starts the plugin.
    ///   - surroundings: The environment of the plugin, which gets home directories of its own.
    ///   - base: An empty directory, whose content the caller removes.
    ///   - report: Receives each check as soon as it is done.
    package init(
        of plugin: InstalledPlugin, options: ConformanceOptions, launcher: ProcessLauncher,
        surroundings: ProgramEnvironment,
        in base: PathBytes, report: @escaping (ConformanceCheck) -> Void
    ) {
        self.plugin = plugin
        self.options = options
        self.launcher = launcher
        self.surroundings = surroundings
        self.base = base
        self.report = report
    }

    /// Runs all checks.
    ///
    /// - Returns: The number of failed checks.
    /// - Throws: The reason why the test itself cannot be run.
    package func run() throws(HandlerProblem) -> Int {
        tell("description", "it describes itself", .passed(description))
        tell("describe-effects", "the verb describe has no side effects", try effectsOfDescribe())
        try readCase()
        let fit = try parametersThatFit()
        tell("parameters", "there are parameters that fit", fit)
        guard fit.word != .failed else { return failures }
        try checkRequests()
        checkReplies()
        try checkSound("sigterm", "SIGTERM ends it within the grace", endings)
        try checkServing()
        tell("own-case", "request.json is answered by response.json", try ownCase())
        return failures
    }

    func tell(_ name: String, _ title: String, _ verdict: ConformanceCheck.Verdict) {
        if verdict.word == .failed { failures += 1 }
        report(ConformanceCheck(name, title, verdict))
    }

    /// Runs a check, or skips it for a plugin that does not do its work for a plain name.
    func checkSound(
        _ name: String, _ title: String,
        _ verdict: (_ name: String) throws(HandlerProblem) -> ConformanceCheck.Verdict
    ) throws(HandlerProblem) {
        tell(name, title, isSound ? try verdict(name) : .skipped("it doesn't do its work for a plain name"))
    }

    // MARK: - Parts of a case

    var timeout: Duration {
        options.timeout ?? plugin.description.timeout.flatMap { try? DurationText.parse($0) } ?? .seconds(60)
    }

    /// The directory of the plugin; nil for a single-file plugin, which is located among other files.
    var ownFolder: PathBytes? { plugin.location == plugin.executable ? nil : plugin.location }

    /// Whether the plugin accepts directories and no files.
    var takesFolders: Bool {
        guard let types = plugin.description.types else { return false }
        return !types.contains("file") && !types.contains("any")
    }

    /// The directory whose content `request.json` works with.
    var testdata: PathBytes? {
        guard let folder = ownFolder?.appending("testdata"), case .present(let snapshot) = DiskProbe.look(at: folder),
            snapshot.type == .directory
        else { return nil }
        return folder
    }

    func stage(_ name: String) throws(HandlerProblem) -> ConformanceStage {
        cases += 1
        return try ConformanceStage(in: base, name: "\(cases)-\(name)", testdata: testdata)
    }

    /// Returns the parameters for a case, with defaults.
    func parameters(in stage: ConformanceStage) -> JSONValue {
        var members = shownRequest?.object?["with"]?.object ?? [:]
        for (key, property) in plugin.description.parameters?.properties ?? [:] where members[key] == nil {
            if let value = property.default { members[key] = value }
        }
        members.merge(options.parameters) { _, given in given }
        return ConformanceToken.replaced(in: .object(members), by: stage.files)
    }

    /// The first kind of event that the plugin accepts, of those that a file can have.
    private var kind: EventKind {
        let kinds: [EventKind] = [.created, .modified, .moved, .attributes, .deleted]
        guard let words = plugin.description.events else { return .created }
        return kinds.first { words.contains($0.rawValue) } ?? .created
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
        stage.write(content ?? sample.content, to: path, asFolder: takesFolders)
        guard case .present(let snapshot) = DiskProbe.look(at: path) else {
            throw HandlerProblem(message: "cannot write '\(path)'", help: "set TMPDIR to another directory")
        }
        let from = kind == .moved ? stage.files.appending("before it was moved\(sample.suffix)") : nil
        let event = FileEvent(kind: kind, path: path, root: stage.files, from: from, snapshot: snapshot, time: DiskProbe.now())
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
            environment: stage.environment(surroundings, request: request),
            directory: ProgramPath(stage.scratch), input: input, timeout: timeout, grace: options.grace)
    }

    func reply(to command: Command, title: String) -> ConformanceReply {
        ConformanceReply(
            title: title, ended: launcher.run(command, stop: StopSignal()), folder: command.directory.path,
            limit: timeout)
    }

    // MARK: - The plugin's own case, and parameters

    private func readCase() throws(HandlerProblem) {
        if let folder = ownFolder, let data = Self.content(of: folder.appending("request.json")) {
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

    static func content(of path: PathBytes) -> [UInt8]? {
        FileManager.default.contents(atPath: path.description).map { Array($0) }
    }

    private static func suffix(of path: PathBytes) -> String {
        let name = String(decoding: path.lastComponent, as: UTF8.self)
        return name.lastIndex(of: ".").map { String(name[$0...]) } ?? ""
    }

    private func parametersThatFit() throws(HandlerProblem) -> ConformanceCheck.Verdict {
        guard let schema = plugin.description.parameters else { return .passed("any are accepted") }
        let parameters = parameters(in: try stage("parameters"))
        if let problem = ParameterCheck.problems(in: ParameterTemplate(parameters), schema: schema).first {
            return .failed(problem.message, help: Self.help(for: problem, parameters, schema))
        }
        return .passed(parameters.object?.isEmpty != false ? "none are needed" : nil)
    }

    private static func help(
        for problem: ParameterProblem, _ parameters: JSONValue, _ schema: ParameterSchema
    ) -> String {
        let place = "or in 'with' of a request.json beside plugin.yaml"
        if let missing = schema.required?.first(where: { parameters.object?[$0] == nil }) {
            return "give it with --with \(missing)=VALUE, \(place)"
        }
        guard case .key(let key)? = problem.path.first else { return "give it with --with NAME=VALUE, \(place)" }
        guard schema.properties?[key] == nil else { return "give it with --with \(key)=VALUE, \(place)" }
        return problem.help ?? "leave '\(key)' out"
    }
}

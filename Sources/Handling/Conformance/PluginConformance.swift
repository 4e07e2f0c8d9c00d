package import FileEvents
import Foundation
import Glibc
import PluginProtocol
package import Rules
import Settling

/// Tries whether a plugin keeps to the protocol, by calling it as Alight does.
///
/// Every case has folders of its own, in one that is removed at the end.
package final class PluginConformance {
    let plugin: Plugin
    let options: ConformanceOptions
    let launcher: ProcessLauncher
    let surroundings: ProgramEnvironment
    /// The folder of all cases.
    let base: PathBytes
    private let report: (ConformanceCheck) -> Void
    private(set) var failures = 0
    /// What was answered for events of files, for the checks that look at all replies.
    var replies: [ConformanceReply] = []
    /// What is in `request.json`.
    private(set) var shownRequest: JSONValue?
    private(set) var sample: (content: [UInt8], suffix: String) = (Array("one line\nand another\n".utf8), ".txt")
    private var cases = 0

    /// - Parameters:
    ///   - plugin: What is tried.
    ///   - options: Parameters, a sample, limits.
    ///   - launcher: Starts it.
    ///   - surroundings: What it is told of the machine; it gets homes of its own.
    ///   - base: An empty folder, whose content is removed by the caller.
    ///   - report: Takes each check as soon as it is done.
    package init(
        of plugin: Plugin, options: ConformanceOptions, launcher: ProcessLauncher, surroundings: ProgramEnvironment,
        in base: PathBytes, report: @escaping (ConformanceCheck) -> Void
    ) {
        self.plugin = plugin
        self.options = options
        self.launcher = launcher
        self.surroundings = surroundings
        self.base = base
        self.report = report
    }

    /// Goes through all checks.
    ///
    /// - Returns: How many failed.
    /// - Throws: Why the test itself can't be done.
    package func run() throws(HandlerProblem) -> Int {
        try checkDescription()
        try readCase()
        guard try checkParameters() else { return failures }
        let isSound = try checkFiles()
        try checkBadInput(isSound: isSound)
        checkReplies()
        try checkEnding(isSound: isSound)
        try checkServing(isSound: isSound)
        try checkCase()
        return failures
    }

    func tell(_ name: String, _ title: String, _ verdict: ConformanceCheck.Verdict) {
        let check = ConformanceCheck(name, title, verdict)
        if check.hasFailed { failures += 1 }
        report(check)
    }

    // MARK: - What cases are made of

    var timeout: Duration {
        options.timeout ?? plugin.description.timeout.flatMap { try? DurationText.parse($0) } ?? .seconds(60)
    }

    /// The folder of the plugin; for a plugin that is one file nil, since that lies among others.
    var ownFolder: PathBytes? { plugin.location == plugin.executable ? nil : plugin.location }

    /// Whether it takes folders and no files.
    var takesFolders: Bool {
        guard let types = plugin.description.types else { return false }
        return !types.contains("file") && !types.contains("any")
    }

    /// The folder whose content `request.json` works with.
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

    /// The parameters, with defaults, for a case.
    func parameters(in stage: ConformanceStage) -> JSONValue {
        var members = shownRequest?.object?["with"]?.object ?? [:]
        for (key, property) in plugin.description.parameters?.properties ?? [:] where members[key] == nil {
            if let value = property.default { members[key] = value }
        }
        members.merge(options.parameters) { _, given in given }
        return ConformanceToken.replaced(in: .object(members), by: stage.files)
    }

    /// The first event that the plugin takes of those that a file can have.
    private var kind: EventKind {
        let kinds: [EventKind] = [.created, .modified, .moved, .attributes, .deleted]
        guard let words = plugin.description.events else { return .created }
        return kinds.first { words.contains($0.rawValue) } ?? .created
    }

    /// The event of a path that is there.
    func event(of path: PathBytes, in stage: ConformanceStage) throws(HandlerProblem) -> FileEvent {
        guard case .present(let snapshot) = DiskProbe.look(at: path) else {
            throw HandlerProblem(message: "cannot write '\(path)'", help: "give TMPDIR another place")
        }
        let from = kind == .moved ? stage.files.appending("before it was moved\(sample.suffix)") : nil
        return FileEvent(
            kind: kind, path: path, root: stage.files, from: from, snapshot: snapshot, time: Self.now)
    }

    func request(
        for event: FileEvent, in stage: ConformanceStage, id: String = PluginConformance.newID(), attempt: Int = 1
    ) -> PluginRequest {
        PluginRequest(
            id: id, attempt: attempt, maxAttempts: 5, interrupted: attempt > 1,
            deadline: Self.now.advanced(by: timeout).description,
            rule: RuleReference(
                name: "conformance", file: stage.files.appending("rules.yaml").description, line: 1),
            with: parameters(in: stage), scratch: stage.scratch.description,
            previous: attempt > 1
                ? PreviousAttempt(attempt: attempt - 1, outcome: "retry", message: "it was cut off") : nil,
            events: [PluginEvent(event)])
    }

    static func newID() -> String { JobID(now: now).description }

    static var now: Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(seconds: Int64(time.tv_sec), nanoseconds: UInt32(time.tv_nsec))
    }

    /// The call of a verb.
    func command(
        _ verb: String, in stage: ConformanceStage, input: [UInt8] = [],
        environment: [(name: String, value: [UInt8])]
    ) -> Command {
        Command(
            executable: plugin.executable, arguments: plugin.arguments + [Array(verb.utf8)], environment: environment,
            directory: ProgramPath(stage.scratch), input: input, timeout: timeout, grace: options.grace)
    }

    // MARK: - The plugin's own case, and parameters

    private func readCase() throws(HandlerProblem) {
        if let folder = ownFolder, let data = Self.content(of: folder.appending("request.json")) {
            shownRequest = JSONValue(json: data)
        }
        if let path = options.sample {
            guard let content = Self.content(of: path) else {
                throw HandlerProblem(message: "cannot read '\(path)'", help: "name a file that is there with --sample")
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

    private func checkParameters() throws(HandlerProblem) -> Bool {
        let title = "there are parameters that fit"
        guard let schema = plugin.description.parameters else {
            tell("parameters", title, .passed("any are taken"))
            return true
        }
        let parameters = parameters(in: try stage("parameters"))
        guard let problem = ParameterCheck.problems(in: ParameterTemplate(parameters), schema: schema).first else {
            let count = parameters.object?.count ?? 0
            tell("parameters", title, .passed(count == 0 ? "none are needed" : nil))
            return true
        }
        tell("parameters", title, .failed(problem.message, help: Self.help(for: problem, parameters, schema)))
        return false
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

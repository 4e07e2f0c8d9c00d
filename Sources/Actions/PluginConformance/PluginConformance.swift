package import ActionAPI
import Glibc
import JSON
import Logging
import PersistentPlugins
import PluginProtocol
package import Plugins
package import Programs
package import Rules
package import System

/// Tests whether a plugin follows the protocol, by calling it as Alight does.
///
/// Every case has directories of its own, in one that is removed at the end.
package struct PluginConformance {
    /// A request for one file, and the expected answer.
    private struct Case {
        enum Kind { case sample, empty, gone, garbage }

        let name: String
        let title: String
        var fileName = Array("file".utf8)
        var kind = Kind.sample
        /// A member that a later version could add.
        var future: JSONValue?
        var help = ConformanceAnswer.help
    }

    private let cases: ConformanceCases
    private let launcher: ProcessLauncher
    private let report: (ConformanceCheck) -> Void
    private var failures = 0
    private var plain: PluginResponse.Outcome?

    /// - Parameters:
    ///   - plugin: The plugin to test.
    ///   - options: Parameters, a sample, limits.
    ///   - launcher: Starts the plugin.
    ///   - hostEnvironment: The environment of the plugin, which gets home directories of its own.
    ///   - base: An empty directory, whose content the caller removes.
    ///   - report: Receives each check as soon as it is done.
    /// - Throws: The reason why the sample cannot be read, or the parameters are not valid.
    package init(
        of plugin: InstalledPlugin, options: ConformanceOptions, launcher: ProcessLauncher,
        hostEnvironment: ProgramEnvironment, in base: PathBytes, report: @escaping (ConformanceCheck) -> Void
    ) throws(Problem) {
        cases = try ConformanceCases(of: plugin, options, hostEnvironment, in: base)
        (self.launcher, self.report) = (launcher, report)
        if let unfit = cases.unfitParameters { throw unfit }
    }

    /// Runs all checks.
    ///
    /// - Returns: The number of failed checks.
    package mutating func run() -> Int {
        record("description", "it describes itself", .passed(cases.plugin.notices.first))
        for one in Self.cases {
            // Without a plain name, nothing else can be judged.
            guard record(one.name, one.title, verdict(on: one)) || one.name != "plain-name" else { return failures }
        }
        record("sigterm", "SIGTERM ends it within the grace", ending())
        record("serve", "serve: it answers requests and pings, and exits at end of file", serving())
        record("own-case", "request.json is answered by response.json", ownCase())
        return failures
    }

    /// Reports a check; returns false if it failed.
    @discardableResult
    private mutating func record(_ name: String, _ title: String, _ verdict: ConformanceCheck.Verdict) -> Bool {
        if verdict.word == .failed { failures += 1 }
        report(ConformanceCheck(name, title, verdict))
        return verdict.word != .failed
    }

    // MARK: - Requests

    private static let cases: [Case] = {
        let names = "take exact bytes from path_base64 or $ALIGHT_PATH, and quote \"$variables\""
        return [
            Case(
                name: "plain-name", title: "a plain name",
                help:
                    "see its log, or give a file that it can work with, --sample FILE, or parameters, --with NAME=VALUE"
            ),
            Case(
                name: "hostile-name", title: "a name with a dash, a newline and quotes",
                fileName: Array("-rf with\nnewline and 'quote\"".utf8), help: names),
            Case(
                name: "raw-name", title: "a name that is not UTF-8", fileName: Array("caf".utf8) + [0xE9], help: names),
            Case(name: "empty-file", title: "a file without content", kind: .empty),
            Case(
                name: "vanished-file", title: "a file that has vanished", kind: .gone,
                help: "answer with the outcome skipped when the file is gone"),
            Case(
                name: "unknown-members", title: "unknown members are ignored", future: ["a": [1, .null]],
                help: "ignore unknown members: version 1 of the protocol gains optional members"),
            Case(
                name: "large-request", title: "a request of nearly 1 MiB",
                future: .string(String(repeating: "ä", count: 500_000)),
                help: "read standard input to its end, and pass it to no program as an argument"),
            Case(
                name: "garbage", title: "garbage for a request is refused", kind: .garbage,
                help: "exit with status 65 when the request can't be read"),
        ]
    }()

    private mutating func verdict(on one: Case) -> ConformanceCheck.Verdict {
        if one.name == "raw-name", cases.plugin.description.rawPaths != true {
            return .skipped("it declines them: its description has no 'raw_paths: true'")
        }
        let stage = cases.stage(one.name)
        var (request, path) = cases.request(for: one.fileName, in: stage, isEmpty: one.kind == .empty)
        if one.kind == .gone { try? ScratchDirectories.remove(path) }
        request["future"] = one.future
        let answer = run(request, input: one.kind == .garbage ? Array("{\"id\":no".utf8) : nil, in: stage)
        plain = plain ?? answer.outcome
        let isRight =
            one.kind == .garbage
            ? answer.outcome != .succeeded
            : answer.isValid && (one.kind != .sample || answer.isDone && answer.outcome == plain)
        return isRight ? .passed(answer.shown) : .failed(answer.shown, help: one.help)
    }

    private func run(
        _ request: [String: JSONValue], input: [UInt8]? = nil, in stage: ConformanceCases.Stage
    ) -> ConformanceAnswer {
        let command = cases.command("run", in: stage, input: input ?? request.input, for: request)
        return ConformanceAnswer(launcher.runBlocking(command), command)
    }

    // MARK: - Termination

    /// Terminates the plugin while it waits for the end of its request.
    private func ending() -> ConformanceCheck.Verdict {
        let stage = cases.stage("sigterm")
        let request = cases.request(for: Array("file".utf8), in: stage).members
        guard let process = try? launcher.start(cases.command("run", in: stage, input: [], for: request)) else {
            return .failed("it can't be started", help: "check its first line, and 'run' in its plugin.yaml")
        }
        var written = 0
        _ = process.input.write(Array(request.input.dropLast()), from: &written)
        func hasEnded(within limit: Duration) -> Bool {
            let deadline = ContinuousClock.now + limit
            while !process.checkForEnd(), ContinuousClock.now < deadline { usleep(10_000) }
            return process.checkForEnd()
        }
        _ = hasEnded(within: .milliseconds(500))
        process.terminate(grace: cases.options.grace)
        defer { process.input.close() }
        if hasEnded(within: cases.options.grace + .seconds(10)), process.end != .signalled(SIGKILL) { return .passed() }
        process.kill()
        return .failed(
            "it kept running for \(DurationText.shown(cases.options.grace)) after SIGTERM, and was killed",
            help: "clean up and exit; a process that still runs after the grace period is killed")
    }

    // MARK: - Serving

    /// Has one process answer several requests, with pings in between, and closes its input.
    private func serving() -> ConformanceCheck.Verdict {
        guard cases.plugin.description.modes?.contains("serve") == true else {
            return .skipped("its description doesn't list that mode")
        }
        let stage = cases.stage("serve")
        var limits = ServeLimits()
        (limits.ping, limits.pong, limits.grace) = (.milliseconds(100), .seconds(2), cases.options.grace)
        let directories = RuntimeDirectories(service: stage.scratch, session: nil, temporary: nil, user: geteuid())
        let plugins = ServedPlugins(
            launcher: launcher, scratchDirectories: ScratchDirectories(in: directories), limits: limits)
        defer { plugins.close(isAtOnce: true) }
        let plugin = plugins.plugin(
            at: cases.plugin.location, running: [], files: [cases.plugin.executable], parallel: 1)
        let command = cases.command("serve", in: stage, input: [])
        let program = ServedProgram(title: "it", command: command, concurrent: 1)
        for number in 1...4 {
            let request = cases.request(for: Array("file \(number)".utf8), in: stage).members
            let sent = ServeRequest(
                to: program, id: request["id"]?.string ?? "", attempt: 1, timeout: cases.timeout, input: request.input,
                deadline: "", logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, progress: { _, _ in })
            let answer = Request<ServeRequest.Reply>()
            plugin?.submit(sent, stop: StopSignal(), isRetry: true, whenAnswered: answer.end)
            let reply = plugin == nil ? nil : answer.wait()
            let help = "write one 'ready', exactly one 'result' for each id, and one 'pong' for each ping"
            switch reply {
            case .answered(let line, nil):
                var ended = ProgramResult(termination: .exited(status: 0))
                ended.output = line
                let answer = ConformanceAnswer(ended, command)
                guard answer.isDone else { return .failed(answer.shown, help: "make serve do the same as run") }
            case .lost(let reason, _), .refused(let reason, _):
                return .failed("it \(reason)", help: help)
            default: return .failed("there is no result within \(DurationText.shown(cases.timeout))", help: help)
            }
            if number == 3 { usleep(2_500_000) }
            guard plugins.count == 1 else { return .failed("it did not answer a ping and was stopped", help: help) }
        }
        let start = ContinuousClock.now
        plugins.close(isAtOnce: false)
        if ContinuousClock.now - start < cases.options.grace { return .passed() }
        return .failed(
            "it is still running \(DurationText.shown(cases.options.grace)) after end of file",
            help: "exit with 0 when standard input ends and all requests have their results")
    }

    // MARK: - The plugin's own case

    /// Calls the plugin with `request.json`, and expects the members of `response.json` in the answer.
    private func ownCase() -> ConformanceCheck.Verdict {
        guard let shown = cases.shownRequest?.object else { return .skipped("there is no request.json") }
        let expected = cases.json("response.json")?.object ?? ["response.json": "is missing"]
        let stage = cases.stage("own-case")
        var request = stage.filled(.object(shown)).object ?? [:]
        request["scratch"] = .string(stage.scratch.description)
        let answer = run(request, in: stage)
        let actual = JSONValue(json: answer.output)?.object ?? ["outcome": .string(answer.outcome.rawValue)]
        for (key, value) in expected.sorted(by: { $0.key < $1.key })
        where !Self.has(actual[key], stage.filled(value)) {
            return .failed(
                "'\(key)' is \(actual[key]?.shown ?? "missing"), and \(stage.filled(value).shown) is expected",
                help: "fix the plugin, or correct response.json")
        }
        return answer.isValid ? .passed(answer.shown) : .failed(answer.shown, help: ConformanceAnswer.help)
    }

    /// Whether a value has all wanted members.
    private static func has(_ actual: JSONValue?, _ wanted: JSONValue) -> Bool {
        wanted.object.map { $0.allSatisfy { has(actual?.object?[$0], $1) } } ?? (actual == wanted)
    }
}

/// The answer of a plugin to one request.
struct ConformanceAnswer {
    /// The outcome that Alight derives from it.
    let outcome: PluginResponse.Outcome
    /// The outcome with its message, for users.
    let shown: String
    /// The bytes that the plugin printed.
    let output: [UInt8]
    /// Whether it is an answer, even if it is a refusal.
    let isValid: Bool
    /// Whether there is nothing more to do.
    var isDone: Bool { isValid && (outcome == .succeeded || outcome == .skipped) }

    static let help = "print one JSON object to standard output and exit with 0, or exit with 65 (failed) or 75 (retry)"

    init(_ ended: ProgramResult, _ command: Command) {
        let table = OutcomeTable(
            program: "the plugin", isIdempotent: true, answers: true, directory: command.directory.path,
            timeout: command.timeout)
        let derived = table.outcomes(of: ended, count: 1).outcomes.first ?? Outcome(.failed)
        (outcome, output) = (derived.result, ended.output)
        shown = outcome.rawValue + (derived.message.isEmpty ? "" : ", \"\(derived.message)\"")
        var reader = ResponseReader(directory: command.directory.path)
        switch (ended.termination, reader.read(output)) {
        case (.exited(let status), .nothing): isValid = status == 0 || (64...78).contains(status)
        case (.exited(let status), .response(let response)):
            isValid = status == 0 || (64...78).contains(status) && response.outcome != .succeeded
        default: isValid = false
        }
    }
}

package import ActionAPI
import Glibc
import JSON
import PluginProtocol
package import Plugins
package import Programs
package import Rules
package import System

/// Tests whether a plugin conforms to the protocol, by calling it as Alight does.
///
/// Every case has directories of its own, in one that is removed at the end.
package struct PluginConformance {
    private let cases: ConformanceCases
    private let report: ConformanceReport

    /// - Parameters:
    ///   - plugin: The plugin to test.
    ///   - options: Parameters, a sample, limits.
    ///   - launcher: Starts the plugin.
    ///   - hostEnvironment: The environment of the plugin, which gets home directories of its own.
    ///   - base: An empty directory, whose content the caller removes.
    ///   - report: Receives each check as soon as it is done.
    package init(
        of plugin: InstalledPlugin, options: ConformanceOptions, launcher: ProcessLauncher,
        hostEnvironment: ProgramEnvironment, in base: PathBytes, report: @escaping (ConformanceCheck) -> Void
    ) {
        cases = ConformanceCases(of: plugin, options, launcher, hostEnvironment, in: base)
        self.report = ConformanceReport(report)
    }

    /// Runs all checks.
    ///
    /// - Returns: The number of failed checks.
    /// - Throws: The reason why the test itself cannot be run.
    package func run() throws(HandlerProblem) -> Int {
        report.record("description", "it describes itself", .passed(description))
        report.record("describe-effects", "the verb describe has no side effects", try effectsOfDescribe())
        try cases.read()
        let fit = try parametersThatFit()
        report.record("parameters", "there are parameters that fit", fit)
        guard fit.word != .failed else { return report.failures }
        try RequestChecks(cases, report).run()
        try report.recordIfSound("sigterm", "SIGTERM ends it within the grace", endings)
        try ServingChecks(cases: cases, report: report).run()
        report.record("own-case", "request.json is answered by response.json", try cases.verdictOnOwnCase())
        return report.failures
    }

    // MARK: - Description

    /// The plugin's description of itself; discovery has already checked that there is one.
    private var description: String {
        let plugin = cases.plugin
        let modes = (plugin.description.modes ?? ["run"]).joined(separator: ", ")
        let version = plugin.description.version.isEmpty ? "" : " \(plugin.description.version)"
        let notice = plugin.notices.first.map { "; \($0)" } ?? ""
        return "\(plugin.description.name)\(version), \(modes)\(notice)"
    }

    private func effectsOfDescribe() throws(HandlerProblem) -> ConformanceCheck.Verdict {
        if let directory = cases.plugin.directory,
            ConformanceCases.content(of: directory.appending("plugin.yaml")) != nil
        {
            return .skipped("plugin.yaml describes it")
        }
        let stage = try cases.stage("describe")
        let before = cases.record(of: stage)
        var command = cases.command("describe", in: stage)
        command.timeout = .seconds(10)
        let outputs = (0..<2).map { _ in cases.launcher.run(command, stop: StopSignal()).output }
        let differences = before.differences(to: cases.record(of: stage))
        if let difference = differences.first(where: { !TreeRecord.isCache($0.path) }) {
            return .failed(
                "'\(difference.path)' was \(difference.verb.rawValue)",
                help: "make describe only print; it is called whenever rules are loaded")
        }
        guard outputs[0] == outputs[1] else {
            return .failed(
                "it printed two different descriptions",
                help: "make describe print the same each time; the answer is cached until the executable changes")
        }
        return .passed(nil)
    }

    private func parametersThatFit() throws(HandlerProblem) -> ConformanceCheck.Verdict {
        guard let schema = cases.plugin.description.parameters else { return .passed("any are accepted") }
        let parameters = cases.parameters(in: try cases.stage("parameters"))
        if let problem = ParameterCheck.problems(in: ParameterTemplate(parameters), schema: schema).first {
            return .failed(problem.message, help: Self.help(for: problem, parameters, schema))
        }
        return .passed(parameters.object?.isEmpty != false ? "none are needed" : nil)
    }

    private static func help(
        for problem: ParameterProblem, _ parameters: JSONValue, _ schema: ParameterSchema
    ) -> String {
        let location = "or in 'with' of a request.json beside plugin.yaml"
        if let missing = schema.required?.first(where: { parameters.object?[$0] == nil }) {
            return "give it with --with \(missing)=VALUE, \(location)"
        }
        guard case .key(let key)? = problem.path.first else { return "give it with --with NAME=VALUE, \(location)" }
        guard schema.properties?[key] == nil else { return "give it with --with \(key)=VALUE, \(location)" }
        return problem.help ?? "leave '\(key)' out"
    }

    // MARK: - Termination

    /// Terminates the plugin while it waits for its request, and once it has received one.
    private func endings(_ name: String) throws(HandlerProblem) -> ConformanceCheck.Verdict {
        for waits in [true, false] {
            let stage = try cases.stage("\(name)-\(waits ? "waiting" : "working")")
            let request = try cases.request(for: name.utf8, in: stage)
            let conversation = try PluginConversation(cases.command("run", in: stage, for: request), cases.launcher)
            // All but the newline, and no end-of-file, so that it has to wait for the rest.
            conversation.send(waits ? request.input.dropLast() : request.input, within: .seconds(5))
            if waits { conversation.waitUntilRead(within: .seconds(2)) } else { conversation.process.input.close() }
            // Most are done at once, which also passes; for others this is long enough to be at work.
            guard conversation.end(within: waits ? .zero : .milliseconds(300)) == nil else { continue }
            let start = ContinuousClock.now
            conversation.process.terminate(grace: cases.options.grace)
            let end = conversation.end(within: cases.options.grace + .seconds(10))
            let took = ContinuousClock.now - start
            if end == nil || end == .signalled(SIGKILL) || took >= cases.options.grace {
                let what = waits ? "while it waited for its request" : "at work"
                return .failed(
                    "\(what), it kept running for \(ConformanceReply.shown(cases.options.grace)) after SIGTERM, and "
                        + "was killed",
                    help: "clean up and exit; a process that still runs after the grace period is killed")
            }
        }
        return .passed(nil)
    }
}

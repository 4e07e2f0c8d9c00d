import ArgumentParser
import PluginProtocol

/// `alight pause`: jobs wait.
struct PauseCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause",
        abstract: "Let a running Alight begin nothing more, or nothing of one rule.",
        discussion: """
            What happens goes on being noted, as jobs that wait, and actions that run end. It lasts until 'alight \
            resume', also when Alight is started again.

            \(ExitStatus.table(of: [.done, .runtimeError, .usage]))
            """)

    @Option(help: ArgumentHelp("Only this rule.", valueName: "name"), completion: OfferedWords.rules)
    var rule: String?

    @OptionGroup var choice: ControlChoice

    func validate() throws { try choice.check() }

    func run() throws { try PauseAnswer.ask("/v1/pause", rule, choice) }
}

/// `alight resume`: they go on.
struct ResumeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Let all rules go on that are paused, or one of them.",
        discussion: """
            While all rules are paused, one of them can't go on alone: then '--rule' changes nothing, and ends with 1.

            \(ExitStatus.table(of: [.done, .runtimeError, .usage]))
            """)

    @Option(help: ArgumentHelp("Only this rule.", valueName: "name"), completion: OfferedWords.rules)
    var rule: String?

    @OptionGroup var choice: ControlChoice

    func validate() throws { try choice.check() }

    func run() throws { try PauseAnswer.ask("/v1/resume", rule, choice) }
}

/// What is said of the rules that are paused.
enum PauseAnswer {
    static func ask(_ target: String, _ rule: String?, _ choice: ControlChoice) throws {
        Output.standard.write(words(try choice.post(target, rule.map { ["rule": .string($0)] } ?? [:])))
    }

    static func words(_ answer: JSONValue) -> String {
        let names = (answer.object?["paused_rules"]?.array ?? []).compactMap(\.string).map { "'\(Display.text($0))'" }
        if answer.object?["paused"]?.bool == true {
            return "all rules are paused" + (names.isEmpty ? "" : "; by name: \(names.joined(separator: ", "))")
        }
        return names.isEmpty ? "no rule is paused" : "paused: \(names.joined(separator: ", "))"
    }
}

/// `alight reload`: the rules are read again.
struct ReloadCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reload",
        abstract: "Have a running Alight read its rules again, as SIGHUP does.",
        discussion: """
            While they have errors, those that ran before go on, and this ends with 1; the running Alight says what is \
            wrong, and so does 'alight check'.

            \(ExitStatus.table(of: [.done, .runtimeError, .usage]))
            """)

    @OptionGroup var choice: ControlChoice

    func validate() throws { try choice.check() }

    func run() throws {
        _ = try choice.post("/v1/reload")
        Output.standard.write("the rules are read again")
    }
}

/// `alight rescan`: everything is looked at again.
struct RescanCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rescan",
        abstract: "Have a running Alight compare everything with what it knows, as SIGUSR1 does.",
        discussion: """
            'alight status' says when that was done, and what it found that no event had told.

            \(ExitStatus.table(of: [.done, .runtimeError, .usage]))
            """)

    @OptionGroup var choice: ControlChoice

    func validate() throws { try choice.check() }

    func run() throws {
        _ = try choice.post("/v1/rescan")
        Output.standard.write("everything is looked at again")
    }
}

extension ControlChoice {
    /// Asks the running Alight for something to be done.
    ///
    /// - Returns: Its answer.
    /// - Throws: `Exit` when it isn't done; why has been said.
    fileprivate func post(_ target: String, _ body: JSONValue? = nil) throws -> JSONValue {
        Signals.endUsually()
        let client = try client()
        return try client.said { () throws(ControlClient.Problem) in try client.ask("POST", target, body) }
    }
}

import ArgumentParser
import JSON

/// `alight pause`: pauses all rules, or one.
struct PauseCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause", abstract: "Pause all rules, or one.",
        discussion: """
            Events are still recorded, as pending jobs, and running actions finish. The pause lasts until 'alight \
            resume', even if Alight is restarted.

            \(ExitStatus.table(of: [.done, .runtimeError, .usage]))
            """)

    @Option(help: ArgumentHelp("Only this rule.", valueName: "name"), completion: OfferedWords.rules)
    var rule: String?

    @OptionGroup var choice: ControlChoice

    func validate() throws { try choice.check() }

    func run() throws { try PauseAnswer.ask("/v1/pause", rule, choice) }
}

/// `alight resume`: resumes all paused rules, or one.
struct ResumeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Resume all paused rules, or one.",
        discussion: """
            While all rules are paused, one rule cannot be resumed by itself: '--rule' then fails with status 1.

            \(ExitStatus.table(of: [.done, .runtimeError, .usage]))
            """)

    @Option(help: ArgumentHelp("Only this rule.", valueName: "name"), completion: OfferedWords.rules)
    var rule: String?

    @OptionGroup var choice: ControlChoice

    func validate() throws { try choice.check() }

    func run() throws { try PauseAnswer.ask("/v1/resume", rule, choice) }
}

/// The output of `pause` and `resume`: the rules that are paused.
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

/// `alight reload`: reloads the rules.
struct ReloadCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reload", abstract: "Reload the rules of the running instance, like SIGHUP.",
        discussion: """
            If they contain errors, the rules loaded before stay in effect, and the exit status is 1. The running \
            instance logs the errors; 'alight check' prints them.

            \(ExitStatus.table(of: [.done, .runtimeError, .usage]))
            """)

    @OptionGroup var choice: ControlChoice

    func validate() throws { try choice.check() }

    func run() throws {
        _ = try choice.post("/v1/reload")
        Output.standard.write("the rules have been reloaded")
    }
}

/// `alight rescan`: rescans all files.
struct RescanCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rescan", abstract: "Rescan all files of the running instance, like SIGUSR1.",
        discussion: """
            'alight status' shows when it was done, and how many changes it found that no event had reported.

            \(ExitStatus.table(of: [.done, .runtimeError, .usage]))
            """)

    @OptionGroup var choice: ControlChoice

    func validate() throws { try choice.check() }

    func run() throws {
        _ = try choice.post("/v1/rescan")
        Output.standard.write("rescanning all files")
    }
}

extension ControlChoice {
    /// Sends a request to the running instance.
    ///
    /// - Returns: The answer.
    /// - Throws: The problem when the request fails.
    fileprivate func post(_ target: String, _ body: JSONValue? = nil) throws -> JSONValue {
        Signals.endUsually()
        return try client().ask("POST", target, body)
    }
}

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

    @OptionGroup var pauses: PauseOptions

    func run() throws { try pauses.ask("/v1/pause") }
}

/// `alight resume`: resumes all paused rules, or one.
struct ResumeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Resume all paused rules, or one.",
        discussion: """
            While all rules are paused, one rule cannot be resumed by itself: '--rule' then fails with status 1.

            \(ExitStatus.table(of: [.done, .runtimeError, .usage]))
            """)

    @OptionGroup var pauses: PauseOptions

    func run() throws { try pauses.ask("/v1/resume") }
}

/// The options and the output of `pause` and `resume`.
struct PauseOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Only this rule.", valueName: "name"), completion: OfferedWords.rules)
    var rule: String?

    @OptionGroup var choice: ControlChoice

    /// Sends the request, and prints the rules that are paused then.
    func ask(_ target: String) throws {
        let answer = PeerObject(try choice.post(target, rule.map { ["rule": .string($0)] } ?? [:]).object)
        let names = Display.list(answer.strings("paused_rules"))
        let line =
            answer.isTrue("paused")
            ? "all rules are paused" + (names.isEmpty ? "" : "; by name: \(names)")
            : names.isEmpty ? "no rule is paused" : "paused: \(names)"
        Output.standard.write(line)
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

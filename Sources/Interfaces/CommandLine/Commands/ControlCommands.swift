import ArgumentParser
import Configuration
import ControlAPI
import Glibc
import JSON
import System

/// `alight pause`: pauses all rules, or one.
struct PauseCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "pause", "Pause all rules, or one.",
        discussion: """
            Events are still recorded, as pending jobs, and running actions finish. The pause lasts until 'alight \
            resume', even if Alight is restarted.
            """)

    @OptionGroup var pauses: PauseOptions

    func run() throws { try pauses.ask("/v1/pause") }
}

/// `alight resume`: resumes all paused rules, or one.
struct ResumeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "resume", "Resume all paused rules, or one.",
        discussion:
            "While all rules are paused, one rule cannot be resumed by itself: '--rule' then fails with status 1.")

    @OptionGroup var pauses: PauseOptions

    func run() throws { try pauses.ask("/v1/resume") }
}

/// The options and the output of `pause` and `resume`.
struct PauseOptions: ParsableArguments {
    @Option(help: .value("name", "Only this rule."), completion: OfferedWords.rules)
    var rule: String?

    @OptionGroup var choice: ControlChoice

    /// Sends the request, and prints the rules that are paused then.
    func ask(_ target: String) throws {
        let answer = try choice.post(target, rule.map { ["rule": .string($0)] } ?? [:])
        let names = Display.list(answer["paused_rules"].texts)
        let line =
            answer["paused"].isTrue
            ? "all rules are paused" + (names.isEmpty ? "" : "; by name: \(names)")
            : names.isEmpty ? "no rule is paused" : "paused: \(names)"
        Output.standard.write(line)
    }
}

/// `alight reload`: reloads the rules.
struct ReloadCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "reload", "Reload the rules of the running instance, like SIGHUP.",
        discussion: """
            If they contain errors, the rules loaded before stay in effect, and the exit status is 1. The running \
            instance logs the errors; 'alight check' prints them.
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
        "rescan", "Rescan all files of the running instance, like SIGUSR1.",
        discussion:
            "'alight status' shows when it was done, and how many changes it found that no event had reported.")

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
        Signals.useDefaultActions()
        return try client().ask("POST", target, body)
    }
}

private let standardSocket = """
    Default: 'control' of the configuration, else $XDG_RUNTIME_DIR/alight/control.sock; if that directory \
    does not belong to the user, in /run/user/UID/alight, else in /tmp/alight-UID; as root \
    /run/alight/control.sock.
    """

/// The options for the control socket and the HTTP addresses, for `alight run`, which creates them.
struct ControlOptions: ParsableArguments {
    @Option(
        help: .value(
            "socket", "The control socket of this instance, for 'alight status' and other commands.",
            discussion: standardSocket),
        completion: .file())
    var control: String?

    @Flag(help: "Do not create a control socket.")
    var noControl = false

    @Option(
        help: .value(
            "address:port", "Serve the dashboard and the API by HTTP at this address; may be repeated.",
            discussion: """
                For example 127.0.0.1:8088. An address that other hosts can reach requires a token, which is stored \
                beside the journal and printed as a link at each start. There is no TLS.
                """))
    var listen: [String] = []

    @Option(
        name: .customLong("external-url"),
        help: .value(
            "url", "The URL of a proxy in front of that address, such as https://alight.example.org; may be repeated.",
            discussion: "All addresses then require the token."))
    var externalURL: [String] = []

    /// Validates the options.
    ///
    /// - Throws: `ValidationError` for an invalid value or combination.
    func check(isOnce: Bool, isDry: Bool) throws {
        if noControl, control != nil {
            throw ValidationError("'--control' cannot be combined with '--no-control'; leave out one of them")
        }
        let given = [
            ("--control", control != nil), ("--listen", !listen.isEmpty), ("--external-url", !externalURL.isEmpty),
        ]
        if isOnce || isDry, let option = given.first(where: \.1)?.0 {
            let flag = isOnce ? "--once" : "--dry-run"
            throw ValidationError("'\(option)' cannot be combined with '\(flag)'; leave it out")
        }
        var settings = Configuration()
        try apply(to: &settings)
        _ = try Self.addresses(listen, option: "--listen")
    }

    /// Applies the values that the options set.
    ///
    /// - Throws: `ValidationError` for an invalid path or URL.
    func apply(to settings: inout Configuration) throws {
        if noControl { settings.control = Setting(nil, from: .flag("--no-control")) }
        if let control { settings.control = Setting(try Self.path(control), from: .flag("--control")) }
        if !listen.isEmpty { settings.listen = Setting(listen.joined(separator: ", "), from: .flag("--listen")) }
        let urls = try urls()
        if !urls.isEmpty { settings.externalURLs = Setting(urls, from: .flag("--external-url")) }
    }

    private func urls() throws -> [String] {
        try externalURL.map { text in try parsed("--external-url") { try ConfigurationValues.externalURL(text) } }
    }

    /// Returns the addresses to listen at: those of the options, else the one of the configuration.
    ///
    /// - Throws: `ValidationError` for an invalid address.
    func addresses(_ settings: Configuration) throws -> [ListenAddress] {
        if !listen.isEmpty { return try Self.addresses(listen, option: "--listen") }
        guard let address = settings.listen?.value else {
            if externalURL.isEmpty { return [] }
            throw ValidationError("'--external-url' requires an address; name one with '--listen'")
        }
        return try Self.addresses([address], option: "listen")
    }

    private static func addresses(_ listen: [String], option: String) throws -> [ListenAddress] {
        try listen.map { text in
            let address = try parsed(option) { ListenAddress(try ConfigurationValues.address(text)) }
            if let address { return address }
            throw ValidationError("\(option): invalid address '\(Display.text(text))'; write '127.0.0.1:8088'")
        }
    }

    /// Returns the path of the socket that `--control` names.
    static func path(_ text: String) throws -> PathBytes {
        try RawArguments.file(text, option: "--control", noun: "socket")
    }
}

/// The option that selects the running instance, for all other commands.
struct ControlChoice: ParsableArguments {
    @Option(
        help: .value(
            "socket", "The control socket of the running instance.",
            discussion: """
                \(standardSocket) If no instance listens there, the socket of another instance in the same directory.
                """),
        completion: .file())
    var control: String?

    func validate() throws { if let control { _ = try ControlOptions.path(control) } }

    /// Returns a client of the running instance.
    ///
    /// - Throws: `Exit` when the control socket is turned off, or when several instances are running; the error has
    ///   been printed.
    func client() throws -> ControlClient {
        if let control { return ControlClient(path: try ControlOptions.path(control)) }
        let settings = try ConfigurationOptions.parse([]).load().settings
        let paths = settings.controlPaths
        guard let best = paths.first else {
            throw Exit(
                .runtimeError, error: "the control socket is turned off by '\(settings.control?.origin.word ?? "")'",
                help: "name a socket there instead of 'false', and restart Alight, "
                    + "or name the socket of 'alight run' with --control")
        }
        for path in paths {
            let descriptor = ControlSocket.connected(to: path, timeout: 0)
            if descriptor >= 0 { close(descriptor) }
            // EAGAIN means that the listen backlog is full: the instance is running and may still answer.
            if descriptor >= 0 || descriptor == -EAGAIN { return ControlClient(path: path) }
        }
        let others = paths.flatMap { ControlSocket.otherSockets(excluding: $0) }
        if others.count > 1 {
            let names = others.map { "\n    \(Display.path($0))" }.joined()
            Output.error.write(
                "error: several instances are running:\(names)\n    help: name the socket of one with --control")
            throw Exit(.runtimeError)
        }
        // If nothing listens there, the request itself reports the reason best.
        return ControlClient(path: others.first ?? best)
    }
}

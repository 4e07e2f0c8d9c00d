import ArgumentParser
import JSON
import PluginConformance
import PluginProtocol
import Plugins
import Programs
import Rules
import System

/// `alight plugins test`: runs the conformance test against a plugin.
struct TestPluginCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "test", abstract: "Test whether a plugin follows the protocol.",
        discussion: """
            Calls the plugin as 'alight run' does, with valid and invalid requests, in a temporary directory. \
            Parameters and a sample file come from request.json and testdata/ beside plugin.yaml, or from the options.

            \(PluginLocation.discussion)

              alight plugins test ./plugins/resize
              alight plugins test thumbnail --with to=@SCRATCH@/out.png --sample image.jpg

            EXIT STATUS
              0  the plugin follows the protocol
              1  a check failed, or the test could not be run
              2  usage error
            """)

    @Argument(help: .value("name|path", "The name or path of the plugin."), completion: OfferedWords.plugins)
    var name: String

    @OptionGroup var location: PluginLocation

    @Option(
        name: .customLong("with"),
        help: .value(
            "key=value",
            "A parameter; may be repeated. The value is JSON, else a string; @SCRATCH@ in it is the temporary directory."
        ))
    var parameters: [String] = []

    @Option(help: .value("file", "A file that the plugin can handle."), completion: .file())
    var sample: String?

    @Option(help: .value("duration", "The maximum time for one answer."))
    var timeout: String?

    @Option(help: .value("duration", "The time that the plugin may take to stop after SIGTERM."))
    var grace: String = "10s"

    @Flag(help: "Print one JSON object per line, for each check.")
    var json = false

    func run() throws {
        let program = try CommandContext(try location.configuration.load().settings)
        let options = try options(program)
        let listing = try location.find(name, program)
        guard let plugin = listing.plugin, listing.problems.isEmpty else {
            for problem in listing.problems {
                emit(
                    ConformanceCheck(
                        "description", "it describes itself, and can be run",
                        .failed(problem.message, help: problem.help ?? "see docs/plugin-protocol.md")))
            }
            throw Exit(.runtimeError)
        }
        let base = try program.scratchDirectories.make()
        defer {
            do throws(ScratchFailure) {
                try ScratchDirectories.remove(base)
            } catch {
                Output.error.write("warning: \(Display.text(error.message))")
            }
            program.scratchDirectories.removeInstanceDirectory()
        }
        var checks = 0
        var test = try PluginConformance(
            of: plugin, options: options, launcher: program.launcher, hostEnvironment: program.environment, in: base
        ) { check in
            checks += 1
            emit(check)
        }
        let failures = test.run()
        if !json {
            let name = Display.text(plugin.description.name)
            Output.standard.write(
                failures == 0 ? "\(name) follows the protocol" : "\(name): \(failures) of \(checks) checks failed")
        }
        if failures > 0 { throw Exit(.runtimeError) }
    }

    private func emit(_ check: ConformanceCheck) {
        let verdict = check.verdict
        if json {
            let object = JSONValue.members([
                "check": check.name, "title": check.title, "verdict": verdict.word.rawValue, "message": verdict.message,
                "help": verdict.help,
            ])
            Output.standard.write(object.line)
            return
        }
        let word = TerminalText.padded(verdict.word == .failed ? "FAILED" : verdict.word.rawValue, 9)
        let message = verdict.message.map { ": \(Display.text($0))" } ?? ""
        let help = verdict.help.map { "\n    help: \(Display.text($0))" } ?? ""
        Output.standard.write("\(word)\(check.title)\(message)\(help)")
    }

    // MARK: - Options

    private func options(_ program: CommandContext) throws -> ConformanceOptions {
        var options = ConformanceOptions()
        for text in parameters {
            guard let equals = text.firstIndex(of: "="), equals != text.startIndex else {
                throw Exit(.usage, error: "'--with \(text)' has no value", help: "write '--with NAME=VALUE'")
            }
            let value = String(text[text.index(after: equals)...])
            let json = JSONValue(json: value.utf8)
            options.parameters[String(text[..<equals])] = json ?? .string(value)
        }
        if let sample { options.sample = program.path(PathBytes(sample)) }
        if let timeout {
            options.timeout = try duration(timeout, of: "--timeout")
            if options.timeout == .zero {
                throw Exit(
                    .usage, error: "'--timeout \(timeout)' leaves no time for an answer", help: "write '--timeout 10s'")
            }
        }
        options.grace = try duration(grace, of: "--grace")
        return options
    }

    private func duration(_ text: String, of option: String) throws -> Duration {
        do throws(Problem) {
            return try DurationText.parse(text)
        } catch {
            throw Exit(.usage, error: "'\(option)': \(error.message)", help: error.help)
        }
    }
}

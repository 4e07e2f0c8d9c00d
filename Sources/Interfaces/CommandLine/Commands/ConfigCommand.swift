import ArgumentParser
import JSON

/// `alight config`: prints the configuration in effect, and the origin of each value.
struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "Show the configuration in effect, and the origin of each value.",
        discussion: """
            Accepts the options of 'alight run' that set a value. Precedence: option, environment variable (such as \
            ALIGHT_JOBS), file, default.

            \(ExitStatus.table(of: [.done, .usage, .rulesInvalid]))
            """)

    @OptionGroup var journal: JournalOptions

    @OptionGroup var running: RunningOptions

    @OptionGroup var control: ControlOptions

    @Flag(help: "Print one JSON object.")
    var json = false

    func run() throws {
        let found = try journal.configuration.load { settings in
            try journal.apply(to: &settings)
            running.apply(to: &settings)
            try control.apply(to: &settings)
        }
        let text = ConfigurationText(found)
        Output.standard.write(json ? text.object.line : text.lines.joined(separator: "\n"))
    }
}

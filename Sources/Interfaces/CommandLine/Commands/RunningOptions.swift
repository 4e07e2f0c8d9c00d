import ArgumentParser
import Configuration

extension LogFormat: ExpressibleByArgument {}
extension LogLevel: ExpressibleByArgument {}

/// The configuration values that `alight run` accepts as options.
struct RunningOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The format of messages: 'text', 'json' (one object per line), or 'journal' (systemd).",
            discussion:
                "Default: 'log.format' of the configuration, else journal if systemd reads the output, else text.",
            valueName: "format"))
    var logFormat: LogFormat?

    @Option(
        help: ArgumentHelp(
            "The lowest level of messages to print.",
            discussion: "Default: 'log.level' of the configuration, else info.", valueName: "level"))
    var logLevel: LogLevel?

    @Option(
        help: ArgumentHelp(
            "The number of slots: actions that may run programs at once, over all rules.",
            discussion: "Default: 'jobs' of the configuration, else twice the number of processors, at least 4.",
            valueName: "n"))
    var jobs: Int?

    func validate() throws {
        guard let jobs, !Configuration.jobsRange.contains(jobs) else { return }
        throw ValidationError("'--jobs \(jobs)' is not between 1 and 256")
    }

    /// Applies the values that the options set.
    func apply(to settings: inout Configuration) {
        if let logFormat { settings.logFormat = Setting(logFormat, from: .flag("--log-format")) }
        if let logLevel { settings.logLevel = Setting(logLevel, from: .flag("--log-level")) }
        if let jobs { settings.jobs = Setting(jobs, from: .flag("--jobs")) }
    }
}

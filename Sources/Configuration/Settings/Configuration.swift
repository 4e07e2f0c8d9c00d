package import Rules
package import System

/// The settings of the configuration; nil for each that is not set.
///
/// Settings are stored in this order: defaults, the file, the environment, the options of a command. A later value
/// replaces an earlier one.
package struct Configuration: Sendable {
    package var journal: Setting<JournalLocation>?
    /// The retention period of finished jobs.
    package var retentionPeriod: Setting<Duration>?
    /// The maximum number of finished jobs to retain.
    package var retentionJobs: Setting<Int>?
    /// The maximum size in bytes of the strings of finished jobs.
    package var retentionSize: Setting<Int>?
    /// The additional `HOST:PORT` on which the control interface listens; an inner nil for none.
    package var listen: Setting<String?>?
    /// The URLs of a proxy in front of it, such as `https://alight.example.org`, in the form of a browser's Origin
    /// header.
    package var externalURLs: Setting<[String]>?
    /// The path of the control socket; an inner nil for none.
    package var control: Setting<PathBytes?>?
    /// The number of slots: actions that may run programs at the same time, over all rules.
    package var jobs: Setting<Int>?
    /// The number of additional slots for rules that have waited for one; nil for as many as `jobs`.
    package var extraJobs: Setting<Int>?
    package var logFormat: Setting<LogFormat>?
    package var logLevel: Setting<LogLevel>?
    /// The plugin directories that are searched before the default ones.
    package var plugins: Setting<[PathBytes]>?
    /// The rules files and directories for commands that name none.
    package var rules: Setting<[PathBytes]>?

    package static let jobsRange = 1...4096
    package static let extraJobsRange = 0...4096
    package static let retentionJobsRange = 0...100_000_000
    /// The minimum of ``retentionSize``.
    package static let leastRetentionSize = 1 << 20
    /// The maximum of ``retentionPeriod``, in days.
    package static let longestRetentionDays: Int64 = 36_500

    package init() {}
}

/// A value of the configuration, and its origin.
package struct Setting<Value: Sendable>: Sendable {
    package var value: Value
    package var origin: SettingOrigin

    package init(_ value: Value, from origin: SettingOrigin) { (self.value, self.origin) = (value, origin) }
}

extension Setting: Equatable where Value: Equatable {}

/// The origin of a configuration value, in order of precedence.
package enum SettingOrigin: Sendable, Hashable {
    /// An option of the command, such as `--jobs`.
    case flag(String)
    /// An environment variable, such as `ALIGHT_JOBS`.
    case variable(String)
    case file(SourcePosition)
    /// The default.
    case standard
}

/// The location of the journal.
package enum JournalLocation: Sendable, Hashable {
    /// `:memory:`: in memory only; it is lost when the program exits.
    case memory
    /// The absolute path of the file.
    case file(PathBytes)
}

/// The format of the log.
package enum LogFormat: String, Sendable, Hashable, CaseIterable {
    /// Readable lines.
    case text
    /// One JSON object per line.
    case json
    /// Lines for the systemd journal, each with its priority as a prefix; see sd-daemon(3).
    case journal
}

/// The minimum level of log messages.
package enum LogLevel: String, Sendable, Hashable, CaseIterable { case debug, info, notice, warning, error }

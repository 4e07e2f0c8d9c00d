package import Rules
package import System

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

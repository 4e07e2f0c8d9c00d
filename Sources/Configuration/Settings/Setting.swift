import FileEvents
package import Rules
package import System

/// A value of the configuration, and who says so.
package struct Setting<Value: Sendable>: Sendable {
    package var value: Value
    package var origin: SettingOrigin

    package init(_ value: Value, from origin: SettingOrigin) {
        self.value = value
        self.origin = origin
    }
}

extension Setting: Equatable where Value: Equatable {}

/// Where a value of the configuration comes from; the first that says something is followed.
package enum SettingOrigin: Sendable, Hashable {
    /// An option of the command, such as `--jobs`.
    case flag(String)
    /// A variable of the environment, such as `ALIGHT_JOBS`.
    case variable(String)
    case file(SourcePlace)
    /// Nobody says anything.
    case standard
}

/// Where the journal is kept.
package enum JournalPlace: Sendable, Hashable {
    /// `:memory:`: nowhere, it ends with the program.
    case memory
    /// The absolute path of the file.
    case file(PathBytes)
}

/// How the program tells what happens while it runs.
package enum LogFormat: String, Sendable, Hashable, CaseIterable {
    /// Lines for people.
    case text
    /// One object a line.
    case json
    /// Lines for the journal of systemd, each with its priority in front; see sd-daemon(3).
    case journal
}

/// From which weight on something is told.
package enum LogLevel: String, Sendable, Hashable, CaseIterable {
    case debug, info, notice, warning, error
}

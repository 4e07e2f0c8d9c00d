import Configuration
import Logging

/// The log of handlers and plugins: standard error, in the format of the run.
struct ActionLog: LogHandler {
    let reporter: Reporter
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level

    init(reporter: Reporter) {
        self.reporter = reporter
        logLevel = Logger.Level(rawValue: reporter.minimum.rawValue) ?? .info
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let level: LogLevel =
            switch event.level {
            case .trace, .debug: .debug
            case .info, .notice: .notice
            case .warning: .warning
            case .error, .critical: .error
            }
        var fields = metadata
        if let more = event.metadata { fields.merge(more) { _, new in new } }
        reporter.emit(level, Display.text(event.message.description), fields: fields.mapValues(\.description))
    }
}

extension Reporter {
    /// The logger of actions.
    var logger: Logger { Logger(label: "alight") { _ in ActionLog(reporter: self) } }
}

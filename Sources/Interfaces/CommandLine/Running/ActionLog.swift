import Configuration
import Logging
import Synchronization

/// The log of handlers and plugins: standard error, in the format of the run.
struct ActionLog: LogHandler {
    let reporter: Reporter
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level

    init(reporter: Reporter) {
        self.reporter = reporter
        logLevel =
            switch reporter.minimum {
            case .debug: .debug
            case .info: .info
            case .notice: .notice
            case .warning: .warning
            case .error: .error
            }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let level: Reporter.Level =
            switch event.level {
            case .trace, .debug: .debug
            case .info, .notice: .notice
            case .warning: .warning
            case .error, .critical: .error
            }
        var facts = metadata
        if let more = event.metadata { facts.merge(more) { _, new in new } }
        reporter.say(level, Display.text(event.message.description), facts: facts.mapValues(\.description))
    }
}

/// Counts the requests to stop.
final class StopCount: Sendable {
    private let stops = Atomic(0)

    func next() -> Int { stops.add(1, ordering: .relaxed).newValue }

    var count: Int { stops.load(ordering: .relaxed) }
}

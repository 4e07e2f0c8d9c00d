import Configuration
import FileEvents
import Glibc
import Logging
import Synchronization
import Watching

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

extension Reporter {
    /// Reports once that the writers of files are not known.
    func sayAuthorsUntold(_ error: WatchError) {
        let effect = "'by' is omitted, and 'where: { by: … }' matches no files"
        switch error {
        case .refused(_, errno: EPERM):
            say(
                .warning, "the kernel reports who writes only to processes with CAP_SYS_ADMIN; \(effect)",
                help: "run Alight as root, or remove 'by'")
        case .refused(_, let errno):
            say(
                .warning, "cannot find out who writes (fanotify: \(String(cString: strerror(errno)))); \(effect)",
                help: errno == EMFILE
                    ? "raise fs.fanotify.max_user_groups" : "run Linux 5.9 or later with fanotify, or remove 'by'")
        case .notFolder: say(.warning, Display.text(error.description), help: error.help)
        }
    }
}

extension PollingReason {
    /// The reason why a directory is polled, as a message for users.
    var text: String {
        switch self {
        case .asked: "the rule sets 'backend: poll'"
        case .fileSystem(let name): "the kernel does not report all changes on \(name)"
        }
    }
}

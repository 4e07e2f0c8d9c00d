package import ActionAPI
import FileEvents
import Logging
import PluginProtocol
package import Rules

/// The `log` action: writes a message to the line of the action, and does nothing else.
///
/// A warning or an error also goes to the program's log.
package struct LogHandler: BlockingHandler {
    package init() {}

    package let summary = HandlerDescription(
        "log",
        [
            "message": .string(
                "The message; placeholders are expanded.", example: "${event} ${relative}", minLength: nil),
            "level": .choice(["debug", "info", "notice", "warning", "error"], "The log level.", default: "info"),
        ], events: nil, traits: [.sharesFile, .isBrief])

    package func run(_ invocation: Invocation) -> Outcome {
        let message = invocation.text("message") ?? Self.sentence(invocation.job.event)
        if let level = invocation.text("level").flatMap(Logger.Level.init(rawValue:)), level >= .warning {
            invocation.log.log(level: level, "\(message)")
        }
        return Outcome(.succeeded, message)
    }

    /// Returns the default message for an event.
    private static func sentence(_ event: FileEvent) -> String {
        let plain = "\(event.kind.rawValue) \(event.path)"
        if let tail = event.tail, !tail.bytes.isEmpty {
            return "\(plain): \(String(decoding: tail.bytes, as: UTF8.self))"
        }
        return switch event.kind {
        case .moved: event.from.map { "\(plain) from \($0)" } ?? plain
        case .modified, .attributes:
            event.changed.isEmpty ? plain : "\(plain) (\(event.changed.joined(separator: ", ")))"
        case .scanStarted: "\(plain): the scan starts"
        case .scanEnded: "\(plain): all files that the scan found have been reported"
        case .overflow: "\(plain): the kernel's event queue overflowed; everything is scanned again"
        case .unmounted: "\(plain): its file system was unmounted"
        case .rootGone: "\(plain): the directory no longer exists"
        case .rootBack: "\(plain): the directory exists again"
        case .created, .deleted, .arriving, .opened, .accessed, .closed: plain
        }
    }
}

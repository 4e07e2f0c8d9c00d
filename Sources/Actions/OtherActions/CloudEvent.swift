import ActionAPI
import FileEvents
import Glibc
import JSON
import PluginProtocol
import Rules
import System

/// The body that `webhook` posts: a CloudEvent 1.0 in structured mode, as JSON.
///
/// It is the same at each attempt, so a receiver can detect a duplicate by its id.
enum CloudEvent {
    static let contentType = "application/cloudevents+json; charset=utf-8"

    /// - Parameters:
    ///   - job: The job with the event.
    ///   - source: The sender, as a URI reference.
    /// - Returns: The body as JSON.
    static func body(of job: Job, source: String) -> [UInt8] {
        let event = job.event
        let relative = PathBytes(event.path.relative(to: event.root) ?? event.path.lastComponent)
        let body: [String: JSONValue] = [
            "specversion": "1.0", "id": .string(job.id.description), "source": .string(source),
            "type": .string("alight.\(event.kind.rawValue)"), "time": .string(event.time.description),
            "subject": .string(relative.bytes.isEmpty ? "." : relative.description), "rule": .string(job.rule),
            "datacontenttype": "application/json", "data": PluginEvent(event).json,
        ]
        return body.lineBytes
    }

    /// Returns the default source, `alight://HOST/RULE`.
    static func source(of rule: String) -> String {
        var buffer = [CChar](repeating: 0, count: 256)
        let isKnown = gethostname(&buffer, buffer.count - 1) == 0
        let host =
            isKnown ? String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self) : ""
        return "alight://\(String(percentEncoding: host.utf8))/\(String(percentEncoding: rule.utf8))"
    }
}

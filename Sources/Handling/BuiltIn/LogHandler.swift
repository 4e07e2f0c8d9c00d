import FileEvents
import Logging
import PluginProtocol
package import Rules

/// `log`: says something in the line of the action, and does nothing else.
///
/// A warning or an error goes to the program's log as well.
package struct LogHandler: Handler {
    package init() {}

    package let summary = HandlerDescription(
        reference: HandlerReference(name: "log"),
        parameters: ParameterSchema(
            type: "object",
            properties: [
                "message": ParameterSchema(type: "string", description: "The line; placeholders are filled in."),
                "level": ParameterSchema(
                    type: "string", enum: ["debug", "info", "notice", "warning", "error"], default: "info",
                    description: "How important it is."),
            ], additionalProperties: false))

    package func run(_ invocation: Invocation) -> Outcome {
        let event = invocation.job.event
        let message =
            invocation.parameters["message"]?.bytes.map { String(decoding: $0, as: UTF8.self) }
            ?? "\(event.kind.rawValue) \(event.path)"
        let level = invocation.parameters["level"]?.bytes.map { String(decoding: $0, as: UTF8.self) } ?? "info"
        if let level = Logger.Level(rawValue: level), level >= .warning {
            invocation.log.log(level: level, "\(message)")
        }
        return Outcome(.succeeded, message)
    }
}

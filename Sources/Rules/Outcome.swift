package import FileEvents
package import PluginProtocol

/// The result of one attempt at a job, as the handler reports it.
///
/// The dispatcher, not the handler, turns an outcome into a schedule: a handler
/// says only what it knows about its own work.
package struct Outcome: Sendable, Hashable {
    package typealias Ending = PluginResponse.Outcome

    package var ending: Ending
    /// One line for people.
    package var message: String
    /// One word for machines.
    package var code: String?
    /// The pause that the handler asks for, with `retry` and `notReady`.
    package var retryAfter: Duration?
    /// Absolute paths that the action wrote: their present state is known, and does not come back as an event.
    package var outputs: [PathBytes]
    package var values: [String: JSONValue]
    /// What a program wrote to its log: the first and the last 64 KiB.
    package var log = ""
    /// Whether the attempt was cut off by a stop, and so does not count.
    package var isInterrupted = false

    package init(
        _ ending: Ending, _ message: String = "", code: String? = nil, retryAfter: Duration? = nil,
        outputs: [PathBytes] = [], values: [String: JSONValue] = [:]
    ) {
        self.ending = ending
        self.message = message
        self.code = code
        self.retryAfter = retryAfter
        self.outputs = outputs
        self.values = values
    }

    /// The attempt was ended because Alight stops; the job is tried again later as if this attempt had not been.
    package static func interrupted(_ message: String) -> Outcome {
        var outcome = Outcome(.retry, message, code: "interrupted")
        outcome.isInterrupted = true
        return outcome
    }
}

import FileEvents
package import PluginProtocol
package import System

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
    /// What the action did that can be taken back, in the order in which it was done.
    package var changes: [FileChange] = []
    package var values: [String: JSONValue]
    /// What a program wrote to its log: the first and the last 64 KiB.
    package var log = ""
    /// How the program ended, and what it was asked; nil for built-in actions.
    package var process: ProcessFacts?
    /// Whether the attempt was cut off by a stop, and so does not count.
    package var isInterrupted = false
    /// Whether the action itself has not said what the failure means: an unknown exit status, a death by signal, a
    /// time-out, a reply that can't be read.
    package var isUncertain = false

    /// Whether no action has begun with the job, in this attempt or one before: the file can't be looked at, or `ready`
    /// has refused it.
    package var isUnbegun = false

    /// The code of what `ready` has refused.
    package static let readyCode = "ready"

    /// The code of an action that could not start.
    package static let cannotStartCode = "cannot-start"

    /// Whether the failure is about the file: the action works, and has refused it.
    ///
    /// Other files may well succeed.
    package var isAboutFile: Bool { ending == .failed && !isUncertain && code != Self.cannotStartCode }

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

    /// The attempt ended because its time was over.
    package static func timedOut(_ message: String) -> Outcome { uncertain(.retry, message, code: "timed-out") }

    /// The attempt failed, and the action has not said what that means.
    package static func uncertain(_ ending: Ending, _ message: String, code: String) -> Outcome {
        var outcome = Outcome(ending, message, code: code)
        outcome.isUncertain = true
        return outcome
    }

    /// The attempt was ended because Alight stops; the job is tried again later as if this attempt had not been.
    package static func interrupted(_ message: String) -> Outcome {
        var outcome = Outcome(.retry, message, code: "interrupted")
        outcome.isInterrupted = true
        return outcome
    }
}

/// What is kept of a program that was run for an attempt.
package struct ProcessFacts: Sendable, Hashable {
    /// The exit status; nil if it did not exit by itself.
    package var status: Int32?
    /// The signal that ended it.
    package var signal: Int32?
    /// The request on its standard input, JSON, with the values of secret parameters left out.
    package var request: String

    package init(status: Int32? = nil, signal: Int32? = nil, request: String) {
        self.status = status
        self.signal = signal
        self.request = request
    }
}

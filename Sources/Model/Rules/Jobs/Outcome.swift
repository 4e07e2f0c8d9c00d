package import JSON
package import PluginProtocol
package import System

/// The result of one attempt at a job, as the handler reports it.
///
/// The dispatcher, not the handler, turns an outcome into a schedule: a handler reports only what it knows about its
/// own work.
package struct Outcome: Sendable, Hashable {
    package typealias Result = PluginResponse.Outcome

    package var result: Result
    /// A message of one line.
    package var message: String
    /// A machine-readable code of one word.
    package var code: String?
    /// The delay that the handler requests, with `retry` and `notReady`.
    package var retryAfter: Duration?
    /// Absolute paths that the action wrote: their current state is known, and is not reported as an event.
    package var outputs: [PathBytes]
    /// The changes that can be undone, in the order in which they were made.
    package var changes: [FileChange] = []
    package var values: [String: JSONValue]
    /// The log output of a program: the first and the last 64 KiB.
    package var log = ""
    /// The exit status and the request of the program; nil for built-in actions.
    package var process: ProcessDetails?
    /// Whether the attempt was interrupted by a shutdown, and so does not count.
    package var isInterrupted = false
    /// Whether the action itself did not classify the failure: an unknown exit status, termination by a signal, a
    /// timeout, an invalid reply.
    package var isUncertain = false

    /// Whether no action has started for the job, in this attempt or an earlier one: the file cannot be read, or
    /// `ready` refused it.
    package var isUnstarted = false

    /// Whether the action ended before it was finished: it was stopped, at a timeout or otherwise, or has crashed.
    package var isCut: Bool { isInterrupted || process?.signal != nil || Self.cutCodes.contains(code ?? "") }

    private static let timedOutCode = "timed-out"
    /// The code of requests to a persistent plugin whose process has ended.
    package static let pluginDiedCode = "plugin-died"
    private static let cutCodes = [timedOutCode, pluginDiedCode]

    /// The code of a refusal by `ready`.
    package static let readyCode = "ready"

    /// The code of an action that could not start.
    package static let cannotStartCode = "cannot-start"

    /// Whether the failure is about the file: the action works, and refused this file.
    ///
    /// Other files may succeed.
    package var isAboutFile: Bool { result == .failed && !isUncertain && code != Self.cannotStartCode }

    package init(
        _ result: Result, _ message: String = "", code: String? = nil, retryAfter: Duration? = nil,
        outputs: [PathBytes] = [], values: [String: JSONValue] = [:]
    ) {
        (self.result, self.message, self.code, self.retryAfter) = (result, message, code, retryAfter)
        (self.outputs, self.values) = (outputs, values)
    }

    /// Creates the outcome of an attempt that exceeded its timeout.
    package static func timedOut(_ message: String) -> Outcome { uncertain(.retry, message, code: timedOutCode) }

    /// Creates the outcome of a failure that the action did not classify.
    package static func uncertain(_ result: Result, _ message: String, code: String) -> Outcome {
        var outcome = Outcome(result, message, code: code)
        outcome.isUncertain = true
        return outcome
    }

    /// Creates the outcome of an attempt that a shutdown of Alight interrupted; the job is retried later, and the
    /// attempt does not count.
    package static func interrupted(_ message: String) -> Outcome {
        var outcome = Outcome(.retry, message, code: "interrupted")
        outcome.isInterrupted = true
        return outcome
    }
}

/// The stored data of a program that ran for an attempt.
package struct ProcessDetails: Sendable, Hashable {
    /// The exit status; nil if it did not exit normally.
    package var status: Int32?
    /// The signal that terminated it.
    package var signal: Int32?
    /// The JSON request on its standard input, without the values of secret parameters; nil if it received none.
    package var request: String?

    package init(status: Int32? = nil, signal: Int32? = nil, request: String? = nil) {
        (self.status, self.signal, self.request) = (status, signal, request)
    }
}

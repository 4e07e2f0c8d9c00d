public import JSON

/// The response that a plugin writes to standard output: the result of the attempt.
public struct PluginResponse: JSONRecord, Sendable, Hashable {
    /// The outcome of an attempt.
    public enum Outcome: String, JSONForm, Sendable, Hashable {
        case succeeded
        /// There was nothing to do.
        case skipped
        /// Temporary; another attempt may succeed.
        case retry
        /// The input is not complete yet; the attempt does not count.
        case notReady = "not_ready"
        /// Permanent.
        case failed
    }

    public var outcome: Outcome
    /// One line for users, at most 4 KiB.
    public var message: String?
    /// One word for programs, `[a-z0-9.-]{1,64}`.
    public var code: String?
    /// The seconds until the next attempt, with `retry` and `notReady`.
    public var retryAfter: Double?
    /// The paths that the plugin wrote.
    public var outputs: [PluginPath]?
    /// Values to store and show; numbers become metrics.
    public var values: [String: JSONValue]?
    /// In a batch, one response for each event, in order.
    public var results: [PluginResponse]?

    public init(
        _ outcome: Outcome, message: String? = nil, code: String? = nil, retryAfter: Double? = nil,
        outputs: [PluginPath]? = nil, values: [String: JSONValue]? = nil, results: [PluginResponse]? = nil
    ) {
        (self.outcome, self.message, self.code, self.retryAfter) = (outcome, message, code, retryAfter)
        (self.outputs, self.values, self.results) = (outputs, values, results)
    }

    package static var empty: PluginResponse { PluginResponse(.failed) }

    package mutating func code(with json: inout JSONCoder) {
        json.member("code", &code)
        json.member("message", &message)
        json.member("outcome", &outcome)
        json.member("outputs", &outputs)
        json.member("results", &results)
        json.member("retry_after", &retryAfter)
        json.member("values", &values)
    }
}

/// A path in a response: a string, or `{"base64": …}` when it is not UTF-8.
public struct PluginPath: JSONForm, Sendable, Hashable {
    public var bytes: [UInt8]

    public init(bytes: [UInt8]) { self.bytes = bytes }

    public init(_ text: String) { self.init(bytes: Array(text.utf8)) }

    package func write(to json: inout JSONCoder) { json.text(bytes) }
    package init?(value: JSONValue) {
        guard let bytes = value.bytes else { return nil }
        self.init(bytes: bytes)
    }
}

/// An error that finishes a request with an outcome other than success.
///
/// Throw the result of one of its functions: `throw PluginFailure.retry("the server is busy")`.
public struct PluginFailure: Error, Sendable, Hashable {
    public var response: PluginResponse

    public init(_ response: PluginResponse) { self.response = response }

    /// Returns an error for a permanent failure; there is no other attempt.
    public static func failed(_ message: String, code: String? = nil) -> PluginFailure {
        PluginFailure(PluginResponse(.failed, message: message, code: code))
    }

    /// Returns an error for a temporary failure; the next attempt is after `seconds`, or as the rule's `retry`
    /// specifies.
    public static func retry(_ message: String, after seconds: Double? = nil, code: String? = nil) -> PluginFailure {
        PluginFailure(PluginResponse(.retry, message: message, code: code, retryAfter: seconds))
    }

    /// Returns an error for a file that isn't complete yet; the attempt does not count.
    public static func notReady(_ message: String, after seconds: Double? = nil, code: String? = nil) -> PluginFailure {
        PluginFailure(PluginResponse(.notReady, message: message, code: code, retryAfter: seconds))
    }

    /// Returns an error for a request without anything to do; the rule's later steps don't run.
    public static func skipped(_ message: String, code: String? = nil) -> PluginFailure {
        PluginFailure(PluginResponse(.skipped, message: message, code: code))
    }
}

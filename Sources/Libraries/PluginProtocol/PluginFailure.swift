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

/// Ends the work of a plugin with another outcome than success.
///
/// Throw what one of its functions gives: `throw PluginFailure.retry("the server is busy")`.
public struct PluginFailure: Error, Sendable, Hashable {
    public var response: PluginResponse

    public init(_ response: PluginResponse) { self.response = response }

    /// It can't succeed; there is no other attempt.
    public static func failed(_ message: String, code: String? = nil) -> PluginFailure {
        PluginFailure(PluginResponse(.failed, message: message, code: code))
    }

    /// It failed and may succeed later: after `seconds`, or when the rule's `retry` says.
    public static func retry(_ message: String, after seconds: Double? = nil, code: String? = nil) -> PluginFailure {
        PluginFailure(PluginResponse(.retry, message: message, code: code, retryAfter: seconds))
    }

    /// The file isn't complete yet; costs no attempt.
    public static func notReady(_ message: String, after seconds: Double? = nil, code: String? = nil) -> PluginFailure {
        PluginFailure(PluginResponse(.notReady, message: message, code: code, retryAfter: seconds))
    }

    /// There is nothing to do; the rule's later steps don't run.
    public static func skipped(_ message: String, code: String? = nil) -> PluginFailure {
        PluginFailure(PluginResponse(.skipped, message: message, code: code))
    }
}

import FoundationEssentials

/// What a plugin writes to standard output: how the attempt ended.
public struct PluginResponse: Sendable, Hashable, Codable {
    /// The five endings.
    public enum Outcome: String, Sendable, Hashable, Codable {
        case succeeded
        /// There was nothing to do.
        case skipped
        /// Temporary; another attempt may succeed.
        case retry
        /// The input is not complete yet; costs no attempt.
        case notReady = "not_ready"
        /// For good.
        case failed
    }

    public var outcome: Outcome
    /// One line for people, at most 4 KiB.
    public var message: String?
    /// One word for machines, `[a-z0-9.-]{1,64}`.
    public var code: String?
    /// Seconds until the next attempt, with `retry` and `notReady`.
    public var retryAfter: Double?
    /// Paths that the plugin wrote.
    public var outputs: [PluginPath]?
    /// Facts to keep and show; numbers become metrics.
    public var values: [String: JSONValue]?
    /// In a batch one response for each event, in order.
    public var results: [PluginResponse]?

    public init(
        _ outcome: Outcome, message: String? = nil, code: String? = nil, retryAfter: Double? = nil,
        outputs: [PluginPath]? = nil, values: [String: JSONValue]? = nil, results: [PluginResponse]? = nil
    ) {
        self.outcome = outcome
        self.message = message
        self.code = code
        self.retryAfter = retryAfter
        self.outputs = outputs
        self.values = values
        self.results = results
    }

    enum CodingKeys: String, CodingKey {
        case outcome, message, code, outputs, values, results
        case retryAfter = "retry_after"
    }
}

/// A path in a response: text, or `{"base64": …}` when it is not UTF-8.
public struct PluginPath: Sendable, Hashable, Codable {
    public var bytes: [UInt8]

    public init(bytes: [UInt8]) { self.bytes = bytes }

    private enum CodingKeys: String, CodingKey { case base64 }

    public init(from decoder: any Decoder) throws {
        if let text = try? decoder.singleValueContainer().decode(String.self) {
            bytes = Array(text.utf8)
            return
        }
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let encoded = try container.decode(String.self, forKey: .base64)
        guard let data = Data(base64Encoded: encoded) else {
            throw DecodingError.dataCorruptedError(
                forKey: .base64, in: container, debugDescription: "'\(encoded)' is not base64")
        }
        bytes = Array(data)
    }

    public func encode(to encoder: any Encoder) throws {
        if let text = String(validating: bytes, as: UTF8.self) {
            var container = encoder.singleValueContainer()
            try container.encode(text)
        } else {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(Data(bytes).base64EncodedString(), forKey: .base64)
        }
    }
}

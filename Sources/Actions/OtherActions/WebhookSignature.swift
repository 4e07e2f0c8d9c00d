import ActionAPI
import Digests
import JSON
import PluginProtocol

/// The kind of signature by which a receiver verifies that the sender knows the secret.
enum WebhookSignature: String, CaseIterable {
    /// The three headers of Standard Webhooks 1.0: HMAC-SHA256 over `ID.TIMESTAMP.BODY`, in base64.
    case standard
    /// `X-Hub-Signature-256`: HMAC-SHA256 over the body, in hexadecimal digits.
    case github

    static let schema = ParameterSchema.choice(
        allCases.map(\.rawValue),
        "With 'secret': the headers of Standard Webhooks (webhook-id, webhook-timestamp, webhook-signature), or X-Hub-Signature-256 as GitHub sends it.",
        default: standard.rawValue)

    /// Returns the headers to add.
    ///
    /// - Parameters:
    ///   - body: The body, byte for byte.
    ///   - id: The id, which is the same at each attempt.
    ///   - seconds: The current time, in seconds since 1970.
    ///   - secret: The secret. After the prefix `whsec_`, the key is encoded in base64; otherwise, it is the bytes of
    ///     the secret.
    /// - Returns: The names and values.
    func headers(body: [UInt8], id: String, seconds: Int64, secret: [UInt8]) -> [(name: String, value: [UInt8])] {
        switch self {
        case .github:
            let digits = String(hexadecimal: Digest.hmacSHA256(body, key: secret))
            return [("X-Hub-Signature-256", Array("sha256=\(digits)".utf8))]
        case .standard:
            let prefix = Array("whsec_".utf8)
            var key = secret
            if secret.starts(with: prefix),
                let decoded = Base64.decoded(String(decoding: secret.dropFirst(prefix.count), as: UTF8.self))
            {
                key = decoded
            }
            let signature = Digest.hmacSHA256(Array("\(id).\(seconds).".utf8) + body, key: key)
            return [
                ("webhook-id", Array(id.utf8)), ("webhook-timestamp", Array(String(seconds).utf8)),
                ("webhook-signature", Array("v1,\(Base64.encoded(signature))".utf8)),
            ]
        }
    }
}

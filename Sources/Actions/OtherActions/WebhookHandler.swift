package import ActionAPI
import Digests
import FileEvents
import Foundation
import PluginProtocol
package import Rules
import System

/// The `webhook` action: reports the event to a server with an HTTP or HTTPS request.
///
/// The request contains the job's id, so a receiver can detect a repeated attempt. Messages contain neither header
/// values, the secret nor the proxy, and of the URL only scheme, host and port.
package struct WebhookHandler: BlockingHandler {
    package init() {}

    package let summary = HandlerDescription(
        "webhook",
        [
            "url": .string(
                "The URL, http:// or https://. The values of placeholders are percent-encoded, except for slashes.",
                example: "https://example.org/hooks/files", pattern: "^https?://[^/]", role: ParameterSchema.url),
            "method": .choice(["POST", "PUT", "PATCH"], "The method.", default: "POST"),
            "headers": ParameterSchema(
                type: "object", examples: [["Authorization": "Bearer ${env:WEBHOOK_TOKEN}"]],
                description: "Additional headers and their values; write secret values as ${env:NAME}.",
                writeOnly: true),
            "body": ParameterSchema(
                examples: [["text": "${name}, ${size} bytes"]],
                description:
                    "The body to send instead of the CloudEvent: a string as it is, a mapping or a list as JSON."),
            "source": .string(
                "The source of the CloudEvent. Default: alight://HOST/RULE.", example: "alight://example.org/inbox"),
            "secret": .string(
                "The key to sign the request with HMAC-SHA256.", example: "${env:WEBHOOK_SECRET}",
                minLength: leastHidden, isSecret: true),
            "signature": WebhookSignature.schema,
            "ca_file": .path(
                "A file of trusted certificates (PEM) to use instead of the system's.",
                example: "/etc/ssl/certs/ca-certificates.crt", role: ParameterSchema.trusted),
            "proxy": .string(
                "The proxy to use; the proxy variables of the environment are ignored.",
                example: "http://proxy.example.org:3128", isSecret: true),
        ], required: ["url"], events: nil, traits: .sharesFile)

    private static let mostRedirects = 5

    /// The length in bytes from which secrets are replaced in messages; a shorter string would hide unrelated text.
    private static let leastHidden = 4

    package func run(_ invocation: Invocation) -> Outcome {
        if let problem = HTTPCall.problem {
            let message = "libcurl can't be loaded (\(problem)); install the package libcurl4"
            return Outcome(.failed, message, code: "no-library")
        }
        do throws(HTTPCall.Failure) {
            var call = try call(for: invocation)
            guard var location = HTTPCall.Location(call.url) else {
                throw .refused("'url' is not a valid http:// or https:// URL")
            }
            for _ in 0...Self.mostRedirects {
                let answer = try call.run(location)
                guard [301, 302, 307, 308].contains(answer.status), let next = answer.redirect else {
                    return outcome(of: answer, from: location, invocation)
                }
                guard let target = HTTPCall.Location(next), target.isSafe(insteadOf: location) else {
                    let other = HTTPCall.Location(next).map { "\($0)" } ?? "an invalid URL"
                    let message =
                        "\(location) redirects to \(other), which is not followed; set 'url' to the final address"
                    return Outcome(.failed, message, code: "redirect")
                }
                call.url = next
                location = target
            }
            return Outcome(.failed, "\(location) redirects more than \(Self.mostRedirects) times", code: "redirect")
        } catch {
            return error.outcome
        }
    }

    // MARK: Request

    private func call(for invocation: Invocation) throws(HTTPCall.Failure) -> HTTPCall {
        let parameters = invocation.parameters
        guard let url = invocation.text("url") else { throw .refused("'url' is missing") }
        let (body, type) = content(for: invocation)
        var headers: [(name: String, value: [UInt8])] = []
        if case .object(let members)? = parameters["headers"] {
            for (name, value) in members.sorted(by: { $0.key < $1.key }) {
                headers.append((name, try Self.checked(value, name)))
            }
        }
        if !headers.contains(where: { $0.name.lowercased() == "content-type" }) {
            headers.append(("Content-Type", Array(type.utf8)))
        }
        if let secret = parameters["secret"]?.bytes {
            guard secret.count >= Self.leastHidden else {
                throw .refused("'secret' has fewer than \(Self.leastHidden) bytes")
            }
            let signature = invocation.text("signature").flatMap(WebhookSignature.init(rawValue:)) ?? .standard
            headers += signature.headers(
                body: body, id: invocation.job.id.description, seconds: DiskProbe.now().seconds, secret: secret)
        }
        let authorities = parameters["ca_file"]?.bytes.map { invocation.baseDirectory.resolving($0).normalized }
        if let authorities, LinkTrust.isMeaningful, let problem = OwnershipCheck.problem(with: authorities) {
            throw .refused("'ca_file': \(problem.message)")
        }
        return HTTPCall(
            url: url, method: invocation.text("method") ?? "POST", headers: headers, body: body,
            authorities: authorities.map { "\($0)" },
            proxy: invocation.text("proxy"), stop: invocation.stop, deadline: .now + invocation.timeout)
    }

    /// Returns the body and its content type.
    private func content(for invocation: Invocation) -> ([UInt8], type: String) {
        switch invocation.parameters["body"] {
        case .text(let bytes)?: return (bytes, "text/plain; charset=utf-8")
        // A name that is not UTF-8 is repaired, because the body is expected to contain strings.
        case let body?: return (body.repaired.lineBytes, "application/json")
        case nil:
            let source = invocation.text("source") ?? CloudEvent.source(of: invocation.job.rule)
            return (CloudEvent.body(of: invocation.job, source: source), CloudEvent.contentType)
        }
    }

    /// Returns the value of a header, which must not add another header: a file name may contain a line break.
    private static func checked(_ value: Parameter, _ name: String) throws(HTTPCall.Failure) -> [UInt8] {
        let separators = Set("()<>@,;:\\\"/[]?={} \t".utf8)
        guard !name.isEmpty, name.utf8.allSatisfy({ (0x21...0x7E).contains($0) && !separators.contains($0) }) else {
            throw .refused("'\(String(cleaning: name.utf8))' is not a valid header name")
        }
        guard !["content-length", "transfer-encoding", "connection"].contains(name.lowercased()) else {
            throw .refused("the header '\(name)' is set by Alight; remove it")
        }
        let bytes: [UInt8]
        switch value {
        case .text(let text): bytes = text
        case .value(let constant): bytes = Array(constant.shown.utf8)
        case .array, .object: throw .refused("the header '\(name)' has a list or a mapping as its value")
        }
        guard bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
            throw .refused(
                "the header '\(name)' would contain a line break or another control character, as a file "
                    + "name can; send such a value in the body")
        }
        return bytes
    }

    // MARK: Response

    private func outcome(of answer: HTTPCall.Answer, from location: HTTPCall.Location, _ invocation: Invocation)
        -> Outcome
    {
        let values: [String: JSONValue] = ["status": .integer(Int64(answer.status))]
        let summary = "\(location) answered \(answer.status)"
        if (200..<300).contains(answer.status) { return Outcome(.succeeded, summary, values: values) }
        let message = "\(summary)\(Self.excerpt(of: answer.body, without: Self.secrets(of: invocation)))"
        let mayPass = [408, 425, 429].contains(answer.status) || answer.status >= 500
        // At most a day: after a longer delay, the reason for it would be forgotten.
        let pause = mayPass ? answer.retryAfter.map { min($0, .seconds(86_400)) } : nil
        return Outcome(
            mayPass ? .retry : .failed, message, code: "http-\(answer.status)", retryAfter: pause, values: values)
    }

    /// Returns the values that must not appear in messages, although a server may return them.
    private static func secrets(of invocation: Invocation) -> [[UInt8]] {
        var secrets = [invocation.parameters["secret"]?.bytes, invocation.parameters["proxy"]?.bytes].compactMap { $0 }
        if case .object(let members)? = invocation.parameters["headers"] {
            for bytes in members.values.compactMap(\.bytes) {
                secrets.append(bytes)
                // The value without its prefix, such as `Bearer`.
                secrets += bytes.split(separator: UInt8(ascii: " ")).map { Array($0) }
            }
        }
        // A key is often part of the URL.
        let url = invocation.text("url") ?? ""
        let location = url.range(of: "://").map { url[$0.upperBound...] } ?? url[...]
        for text in [String(location), location.removingPercentEncoding ?? ""] {
            let path = text.drop { !"/?".contains($0) }
            secrets.append(Array(path.utf8))
            secrets += path.split(whereSeparator: { "/?&=".contains($0) }).map { Array($0.utf8) }
        }
        return secrets.filter { $0.count >= leastHidden }.sorted { $0.count > $1.count }
    }

    /// Returns up to 200 bytes of the response on one line, after a colon; empty for an empty response.
    private static func excerpt(of body: [UInt8], without secrets: [[UInt8]]) -> String {
        var shown: [UInt8] = []
        var rest = body[...]
        // The stored part of the response may end in the middle of a secret.
        let longest = secrets.first?.count ?? 0
        while !rest.isEmpty, shown.count < 200 {
            if let secret = secrets.first(where: { rest.starts(with: $0) }) {
                shown += Array("***".utf8)
                rest = rest.dropFirst(secret.count)
            } else if rest.count < longest, body.count >= 4096 {
                break
            } else {
                shown.append(rest.removeFirst())
            }
        }
        let isCut = !rest.isEmpty
        shown.removeSplitCharacter(before: rest.first)
        let words = String(decoding: shown, as: UTF8.self).split(whereSeparator: \.isWhitespace)
        guard !words.isEmpty else { return "" }
        let line = String(cleaning: words.joined(separator: " ").utf8)
        return ": \(line)\(isCut ? "…" : "")"
    }
}

extension HTTPCall.Location: CustomStringConvertible {
    /// `https://host`, with the port if it is not the default of the scheme.
    var description: String {
        let isDefaultPort = port.isEmpty || scheme == "https" && port == "443" || scheme == "http" && port == "80"
        return String(cleaning: "\(scheme)://\(host)\(isDefaultPort ? "" : ":\(port)")".utf8)
    }
}

extension Parameter {
    /// The value as JSON, with invalid UTF-8 repaired.
    fileprivate var repaired: JSONValue {
        switch self {
        case .value(let value): value
        case .text(let bytes): .string(String(decoding: bytes, as: UTF8.self))
        case .array(let elements): .array(elements.map(\.repaired))
        case .object(let members): .object(members.mapValues(\.repaired))
        }
    }
}

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
            let isEncoded = secret.starts(with: prefix)
            let encoded = isEncoded ? String(decoding: secret.dropFirst(prefix.count), as: UTF8.self) : nil
            let key = Base64.decoded(encoded) ?? secret
            let signature = Digest.hmacSHA256(Array("\(id).\(seconds).".utf8) + body, key: key)
            return [
                ("webhook-id", Array(id.utf8)), ("webhook-timestamp", Array(String(seconds).utf8)),
                ("webhook-signature", Array("v1,\(Base64.encoded(signature))".utf8)),
            ]
        }
    }
}

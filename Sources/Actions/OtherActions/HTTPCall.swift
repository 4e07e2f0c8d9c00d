import ActionAPI
import CLibCurl
import PluginProtocol
import Rules

/// One HTTP or HTTPS request and its response; redirects are reported, not followed.
struct HTTPCall {
    var url: String
    var method: String
    var headers: [(name: String, value: [UInt8])]
    var body: [UInt8]
    /// A file of trusted certificate authorities; nil for the system's.
    var authorities: String?
    var proxy: String?
    var stop: StopSignal
    /// The deadline from the rule's timeout.
    var deadline: ContinuousClock.Instant

    /// The outcome of a call without a response.
    struct Failure: Error {
        var outcome: Outcome

        /// Returns the failure of a request that the rule must change.
        static func refused(_ reason: String) -> Failure {
            Failure(outcome: Outcome(.failed, reason, code: "bad-request"))
        }
    }

    struct Answer {
        var status: Int
        /// The delay that Retry-After requests, as seconds or as a date.
        var retryAfter: Duration?
        /// The absolute URL that the response redirects to.
        var redirect: String?
        /// The first bytes of the body.
        var body: [UInt8]
    }

    /// The reason why the library cannot be loaded, or nil; the first access loads it.
    static var problem: String? { clc_load().map { String(cString: $0) } }

    /// The scheme, host and port of a connection.
    struct Location: Equatable {
        var scheme: String
        var host: String
        var port: String

        /// Parses a URL, or returns nil if it is invalid; the library must be loaded.
        init?(_ url: String) {
            var parts = clc_url()
            guard !url.utf8.contains(0), clc_parse(url, &parts) == 0 else { return nil }
            func text<Part>(_ part: Part) -> String {
                withUnsafeBytes(of: part) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self).lowercased() }
            }
            scheme = text(parts.scheme)
            host = text(parts.host)
            port = text(parts.port)
        }

        /// Whether it may receive a request for the other one: it is the same, or the same host over TLS.
        func isSafe(insteadOf other: Location) -> Bool {
            self == other
                || host == other.host && scheme == "https" && other.scheme == "http" && port == "443"
                    && other.port == "80"
        }
    }

    /// The number of bytes of a response that are stored, and the number that are read at most.
    private static let storedBytes = 1 << 12
    private static let mostBytes = 1 << 20
    /// The interval in milliseconds at which the signal is checked if it has no descriptor.
    private static let tick: Int32 = 20

    private final class Content {
        var stored: [UInt8] = []
        var count = 0
    }

    /// Sends the request and waits for the response; blocks.
    ///
    /// The library must be loaded.
    ///
    /// - Parameter location: The location of the URL, for messages.
    /// - Returns: The response.
    /// - Throws: The outcome, if there is no response.
    func run(_ location: Location) throws(Failure) -> Answer {
        let content = Content()
        guard let transfer = start(content) else { throw .refused("\(location): out of memory") }
        defer { clc_close(transfer) }
        while true {
            if stop.isRaised { throw Failure(outcome: .interrupted("stopped while waiting for \(location)")) }
            let left = deadline - .now
            guard left > .zero else {
                throw Failure(outcome: .timedOut("\(location) did not answer within the timeout"))
            }
            let wait = Int32(min(left / .milliseconds(1) + 1, 1000))
            if clc_perform(transfer, stop.descriptor, stop.descriptor < 0 ? min(wait, Self.tick) : wait) == 0 { break }
        }
        let kind = clc_kind(clc_result(transfer))
        let status = clc_status(transfer)
        // The status is known even if the body exceeds the limit.
        guard clc_result(transfer) == 0 || kind == CLC_NOT_TAKEN && status != 0 else {
            let message = String(cString: clc_error(transfer))
            switch kind {
            case CLC_UNSUPPORTED_PROTOCOL, CLC_BAD_URL, CLC_BAD_CA_FILE: throw .refused("\(location): \(message)")
            case CLC_NOT_VERIFIED:
                let help = "; set 'ca_file' to trust your own certificate authority"
                throw Failure(outcome: Outcome(.failed, "\(location) is not trusted: \(message)\(help)", code: "tls"))
            default: throw Failure(outcome: Outcome(.retry, "\(location): \(message)", code: "network"))
            }
        }
        let pause = clc_retry_after(transfer)
        return Answer(
            status: status, retryAfter: pause > 0 ? .seconds(pause) : nil,
            redirect: clc_redirect(transfer).map { String(cString: $0) }, body: content.stored)
    }

    private func start(_ content: Content) -> OpaquePointer? {
        guard let transfer = clc_open(url, method, body, body.count) else { return nil }
        var results = headers.map { header in
            let line = Array(header.name.utf8) + Array(header.value.isEmpty ? ";".utf8 : ": ".utf8) + header.value
            return clc_add_header(transfer, line.map { CChar(bitPattern: $0) } + [0])
        }
        // No `Expect: 100-continue`, because not all servers answer it.
        results.append(clc_add_header(transfer, "Expect:"))
        if let authorities { results.append(clc_set_ca_file(transfer, authorities)) }
        if let proxy { results.append(clc_set_proxy(transfer, proxy)) }
        results.append(clc_set_connect_time(transfer, Int64(max(1, min(30_000, (deadline - .now) / .milliseconds(1))))))
        guard results.allSatisfy({ $0 == 0 }),
            clc_start(transfer, Self.receive, Unmanaged.passUnretained(content).toOpaque()) == 0
        else {
            clc_close(transfer)
            return nil
        }
        return transfer
    }

    private static let receive: clc_receive = { context, bytes, count in
        guard let context, let bytes else { return 0 }
        let content = Unmanaged<Content>.fromOpaque(context).takeUnretainedValue()
        let part = UnsafeRawBufferPointer(start: bytes, count: count)
        content.stored += part.prefix(max(0, HTTPCall.storedBytes - content.stored.count))
        content.count += count
        return content.count <= HTTPCall.mostBytes ? 1 : 0
    }
}

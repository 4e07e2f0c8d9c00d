import CLibCurl
import Glibc

/// One request over HTTP or HTTPS and its answer; redirects are told, not followed.
struct HTTPCall {
    var url: String
    var method: String
    var headers: [(name: String, value: [UInt8])]
    var body: [UInt8]
    /// The authorities to be trusted; nil for the system's.
    var authorities: String?
    var proxy: String?
    var stop: StopSignal
    /// When the rule's time-out ends it.
    var deadline: ContinuousClock.Instant

    enum Ending {
        case answered(Answer)
        /// There was no answer.
        case failed(Fault, String)
        case stopped
        case timedOut
    }

    struct Answer {
        var status: Int
        /// What Retry-After asks for, as seconds or as a date.
        var retryAfter: Duration?
        /// Where it redirects to, absolute.
        var redirect: String?
        /// The first bytes of the content.
        var body: [UInt8]
    }

    enum Fault {
        /// The rule has to be another one.
        case wrong
        /// The certificate isn't trusted.
        case notVerified
        case network
    }

    /// Loads the library; why that can't be done, or nil.
    static var problem: String? { clc_load().map { String(cString: $0) } }

    /// Where a connection would go.
    struct Place: Equatable {
        var scheme: String
        var host: String
        var port: String

        /// Nil for what is no URL; the library has to be there.
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

        /// Whether it may get what was meant for the other one: the same, or the same host over TLS.
        func isSafe(insteadOf other: Place) -> Bool {
            self == other
                || host == other.host && scheme == "https" && other.scheme == "http" && port == "443"
                    && other.port == "80"
        }
    }

    /// What is kept of an answer, and how much is read of it at most.
    private static let keptBytes = 1 << 12
    private static let mostBytes = 1 << 20
    /// How often the signal is looked at when it has no descriptor.
    private static let tick: Int32 = 20

    private final class Content {
        var kept: [UInt8] = []
        var count = 0
    }

    /// Sends it and waits for the answer; blocks.
    ///
    /// The library has to be there.
    func run() -> Ending {
        let content = Content()
        guard let transfer = start(content) else { return .failed(.wrong, "no memory for a request") }
        defer { clc_close(transfer) }
        while true {
            if stop.isRaised { return .stopped }
            let left = deadline - .now
            guard left > .zero else { return .timedOut }
            let wait = Int32(min(left / .milliseconds(1) + 1, 1000))
            if clc_perform(transfer, stop.descriptor, stop.descriptor < 0 ? min(wait, Self.tick) : wait) == 0 { break }
        }
        let kind = clc_kind(clc_result(transfer))
        let status = clc_status(transfer)
        // An answer without end has said how it ends by its status.
        guard clc_result(transfer) == 0 || kind == CLC_NOT_TAKEN && status != 0 else {
            let message = String(cString: clc_error(transfer))
            switch kind {
            case CLC_UNSUPPORTED_PROTOCOL, CLC_BAD_URL, CLC_BAD_CA_FILE: return .failed(.wrong, message)
            case CLC_NOT_VERIFIED: return .failed(.notVerified, message)
            default: return .failed(.network, message)
            }
        }
        let pause = clc_retry_after(transfer)
        return .answered(
            Answer(
                status: status, retryAfter: pause > 0 ? .seconds(pause) : nil,
                redirect: clc_redirect(transfer).map { String(cString: $0) }, body: content.kept))
    }

    private func start(_ content: Content) -> OpaquePointer? {
        guard let transfer = clc_open(url, method, body, body.count) else { return nil }
        var isTaken = true
        for header in headers {
            let line = Array(header.name.utf8) + Array(header.value.isEmpty ? ";".utf8 : ": ".utf8) + header.value
            if clc_add_header(transfer, line.map { CChar(bitPattern: $0) } + [0]) != 0 { isTaken = false }
        }
        // No question beforehand whether the body is welcome: not all servers answer that.
        if clc_add_header(transfer, "Expect:") != 0 { isTaken = false }
        if let authorities, clc_set_ca_file(transfer, authorities) != 0 { isTaken = false }
        if let proxy, clc_set_proxy(transfer, proxy) != 0 { isTaken = false }
        let connecting = Int64(max(1, min(30_000, (deadline - .now) / .milliseconds(1))))
        guard isTaken, clc_set_connect_time(transfer, connecting) == 0,
            clc_start(transfer, Self.take, Unmanaged.passUnretained(content).toOpaque()) == 0
        else {
            clc_close(transfer)
            return nil
        }
        return transfer
    }

    private static let take: clc_take = { context, bytes, count in
        guard let context, let bytes else { return 0 }
        let content = Unmanaged<Content>.fromOpaque(context).takeUnretainedValue()
        let part = UnsafeRawBufferPointer(start: bytes, count: count)
        content.kept += part.prefix(max(0, HTTPCall.keptBytes - content.kept.count))
        content.count += count
        return content.count <= HTTPCall.mostBytes ? 1 : 0
    }
}

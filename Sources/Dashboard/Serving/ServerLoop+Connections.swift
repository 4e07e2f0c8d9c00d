import CAlightLinux
import CLibMicroHTTPD
import Glibc

// Who is connected, and who is not let in.
extension ServerLoop {
    /// Most connections at once, and most of them by TCP, so that strangers leave room for the Unix socket.
    static let mostConnections = 64
    static let mostStrangers = 48
    /// What the library has for a header: more, so that one that is too long arrives, and is told so in the way of the API.
    private static let headerMemory = 128 << 10
    private static let parting = Duration.seconds(1)
    private static let mostRefused = 16
    /// How long nobody is let in when there is nothing left for one more: poll(2) would tell of them at once, again.
    private static let shortage = Duration.milliseconds(200)

    func acceptAll() {
        if let acceptFrom, now < acceptFrom { return }
        acceptFrom = nil
        if let local { accept(local, .local) }
        for descriptor in network { accept(descriptor, .network) }
    }

    private func accept(_ listener: Int32, _ way: APIRequest.Way) {
        while true {
            let descriptor = cal_accept(listener)
            guard descriptor >= 0 else {
                if [EMFILE, ENFILE, ENOMEM, ENOBUFS].contains(-descriptor) { acceptFrom = now + Self.shortage }
                return
            }
            guard way == .network || isAllowed(descriptor) else {
                close(descriptor)
                continue
            }
            let strangers = connections.values.count { $0.way == .network }
            guard connections.count < Self.mostConnections, way == .local || strangers < Self.mostStrangers else {
                refuse(descriptor, "there are too many connections", help: "try again in a moment")
                continue
            }
            guard let server = startedServer() else {
                refuse(descriptor, "libmicrohttpd can't be loaded", help: "install libmicrohttpd12")
                continue
            }
            connections[descriptor] = Connection(way: way, deadline: now + Self.arrival)
            if chm_add(server, descriptor) != 0 { connections[descriptor] = nil }
        }
    }

    /// Whether the other end is the same user, or root.
    private func isAllowed(_ descriptor: Int32) -> Bool {
        var user: UInt32 = 0
        guard cal_peer_user(descriptor, &user) == 0 else { return false }
        return user == geteuid() || user == 0
    }

    /// Answers without the library, as far as that goes without waiting.
    private func refuse(_ descriptor: Int32, _ message: String, help: String) {
        let response = APIError(503, message, help: help).response
        let headers =
            response.headers + APIResponse.securityHeaders
            + [("Content-Length", "\(response.body.count)"), ("Connection", "close")]
        let head = headers.map { "\($0.name): \($0.value)\r\n" }.joined()
        let bytes = Array("HTTP/1.1 503 Service Unavailable\r\n\(head)\r\n".utf8) + response.body
        _ = bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        guard refused.count < Self.mostRefused else {
            close(descriptor)
            return
        }
        shutdown(descriptor, Int32(SHUT_WR))
        refused.append((descriptor: descriptor, until: now + Self.parting))
    }

    /// The library's server, which is started for the first client.
    private func startedServer() -> OpaquePointer? {
        if let server { return server }
        guard !hasFailed else { return nil }
        if let problem = chm_load() {
            hasFailed = true
            parts.complain(String(cString: problem))
            return nil
        }
        let callbacks = chm_callbacks(
            context: Unmanaged.passUnretained(self).toOpaque(),
            arrived: { context, request in loop(context)?.arrived(request) },
            ended: { context, request, descriptor in loop(context)?.ended(request, descriptor) },
            closed: { context, descriptor in loop(context)?.connections[descriptor] = nil },
            more: { context, request, buffer, size in
                loop(context)?.more(request, UnsafeMutableRawBufferPointer(start: buffer, count: size)) ?? -1
            })
        server = chm_start(callbacks, UInt32(Self.mostConnections), Self.headerMemory, Self.mostBody)
        if server == nil {
            hasFailed = true
            parts.complain("libmicrohttpd can't be started")
        }
        return server
    }
}

private func loop(_ context: UnsafeMutableRawPointer?) -> ServerLoop? {
    context.map { Unmanaged<ServerLoop>.fromOpaque($0).takeUnretainedValue() }
}

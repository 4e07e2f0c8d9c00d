import CAlightLinux
import CLibMicroHTTPD
import Glibc
import Synchronization
package import System

/// Accepts clients, and drops those that stay too long.
///
/// Each connection has a thread of libmicrohttpd, which reads requests, writes responses, and closes stalled
/// connections. This type adds what the library cannot do: the check of the peer of a Unix socket, a response for
/// clients beyond the limit, and one deadline for a whole request, so that a client that sends byte after byte is
/// dropped like one that sends nothing. The thread sleeps in poll(2), without a timeout while no client is connected.
final class ServerLoop {
    /// The library's memory for a header, larger than the API's limit so that the API answers one that is too long.
    private static let headerMemory = 128 << 10
    /// The time until a refused connection is closed; closing it at once could discard the response.
    private static let refusalDelay = Duration.seconds(1)
    private static let maximumRefused = 16
    /// The pause after accept(2) has run out of resources; poll(2) would report the same connections again at once.
    private static let acceptPause = Duration.milliseconds(200)
    /// The time to wait for clients that are still reading when the server stops.
    private static let stopTimeout = Duration.milliseconds(500)
    /// The time after which a socket that has been removed is created again: the directory may be being removed, and
    /// unmounted even if it is not empty.
    private static let renewalDelay = Duration.seconds(1)
    /// The pause after a socket that has been removed could not be created again.
    private static let renewalPause = Duration.seconds(5)

    private let clients: Clients
    private var socket: ControlSocket?
    private let network: [Int32]
    private let renew: (_ lost: PathBytes, _ isRepeated: Bool) -> ControlSocket?
    private let complain: @Sendable (String) -> Void
    /// The library's server; nil until the first client connects.
    private var server: OpaquePointer?
    private var hasFailed = false
    /// The refused connections, and the times at which they are closed.
    private var refused: [(descriptor: Int32, until: ContinuousClock.Instant)] = []
    private var acceptFrom: ContinuousClock.Instant?
    /// The time at which the socket is created again if it has been removed.
    private var renewAt: ContinuousClock.Instant?
    /// Whether it could not be created again.
    private var isLost = false

    init(
        _ clients: Clients, _ socket: ControlSocket?, network: [Int32],
        renew: @escaping (_ lost: PathBytes, _ isRepeated: Bool) -> ControlSocket?,
        complain: @escaping @Sendable (String) -> Void
    ) {
        (self.clients, self.socket, self.network, self.complain) = (clients, socket, network, complain)
        self.renew = renew
    }

    func run() {
        clients.feed.setWake { [wake = clients.wake] in wake.wake() }
        while !clients.isStopping {
            let listeners = acceptFrom == nil ? [socket?.descriptor].compactMap(\.self) + network : []
            wait(
                for: [socket?.watch].compactMap(\.self) + listeners,
                until: [clients.nextDeadline, acceptFrom, renewAt, refused.map(\.until).min()])
            renewSocket(at: .now)
            acceptAll()
            expire(at: .now)
        }
        clients.feed.setWake(nil)
        clients.abandonAll()
        let end = ContinuousClock.now + Self.stopTimeout
        while !clients.isEmpty, .now < end { wait(for: [], until: [end]) }
        expire(at: .now + Self.refusalDelay)
        // Stopping the library's server joins its threads.
        if let server, !clients.areBusy {
            chm_stop(server)
            Unmanaged.passUnretained(clients).release()
        }
        socket?.end()
    }

    /// Creates the socket again if it has been removed, as together with `$XDG_RUNTIME_DIR` at logout.
    private func renewSocket(at now: ContinuousClock.Instant) {
        guard let lost = socket else { return }
        if lost.hasNews { renewAt = now + Self.renewalDelay }
        guard let time = renewAt, time <= now else { return }
        renewAt = nil
        let renewed = lost.isPresent ? lost : renew(lost.path, isLost)
        isLost = renewed == nil
        if let renewed, renewed !== lost {
            lost.end()
            socket = renewed
        } else if isLost {
            renewAt = now + Self.renewalPause
        }
    }

    private func wait(for others: [Int32], until deadlines: [ContinuousClock.Instant?]) {
        var descriptors = ([clients.wake.descriptor] + others).map {
            pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
        }
        _ = cal_poll(&descriptors, UInt(descriptors.count), deadlines.compactMap(\.self).min().pollLimit)
        if descriptors[0].revents != 0 {
            clients.wake.clear()
            clients.wakeStreams()
        }
    }

    private func expire(at now: ContinuousClock.Instant) {
        clients.dropLate(at: now)
        for (descriptor, until) in refused where until <= now { close(descriptor) }
        refused.removeAll { $0.until <= now }
    }

    // MARK: - Accepting

    private func acceptAll() {
        if let acceptFrom, .now < acceptFrom { return }
        acceptFrom = nil
        if let socket { accept(socket.descriptor, .local) }
        for descriptor in network { accept(descriptor, .network) }
    }

    private func accept(_ listener: Int32, _ transport: APIRequest.Transport) {
        while true {
            let descriptor = cal_accept(listener)
            guard descriptor >= 0 else {
                if [EMFILE, ENFILE, ENOMEM, ENOBUFS].contains(-descriptor) { acceptFrom = .now + Self.acceptPause }
                return
            }
            guard transport == .network || isAllowed(descriptor) else {
                close(descriptor)
                continue
            }
            guard let server = startedServer() else {
                refuse(descriptor, "libmicrohttpd cannot be loaded", help: "install libmicrohttpd12")
                continue
            }
            guard clients.add(descriptor, transport) else {
                refuse(descriptor, "too many connections", help: "try again later")
                continue
            }
            if chm_add(server, descriptor) != 0 { clients.closed(descriptor) }
        }
    }

    /// Returns whether the peer runs as this user or as root.
    private func isAllowed(_ descriptor: Int32) -> Bool {
        var user: UInt32 = 0
        guard cal_peer_user(descriptor, &user) == 0 else { return false }
        return user == geteuid() || user == 0
    }

    private func refuse(_ descriptor: Int32, _ message: String, help: String) {
        APIError(503, message, help: help).send(to: descriptor)
        guard refused.count < Self.maximumRefused else {
            close(descriptor)
            return
        }
        shutdown(descriptor, Int32(SHUT_WR))
        refused.append((descriptor: descriptor, until: .now + Self.refusalDelay))
    }

    /// Returns the library's server, which is started for the first client.
    private func startedServer() -> OpaquePointer? {
        if let server { return server }
        guard !hasFailed else { return nil }
        if let problem = chm_load() {
            hasFailed = true
            complain(String(cString: problem))
            return nil
        }
        let context = Unmanaged.passRetained(clients)
        let callbacks = chm_callbacks(
            context: context.toOpaque(),
            arrived: { context, request in request.map { Clients.of(context).arrived($0) } ?? 0 },
            ended: { context, own, descriptor in
                let stream = own.map { Unmanaged<EventStream>.fromOpaque($0).takeRetainedValue() }
                Clients.of(context).ended(stream, descriptor)
            },
            closed: { context, descriptor in Clients.of(context).closed(descriptor) },
            more: { context, own, buffer, size in
                guard let own else { return 0 }
                let stream = Unmanaged<EventStream>.fromOpaque(own).takeUnretainedValue()
                return Clients.of(context).more(stream, UnsafeMutableRawBufferPointer(start: buffer, count: size))
            })
        server = chm_start(
            callbacks, UInt32(2 * Clients.maximumConnections), UInt32(Clients.sendTimeout / .seconds(1)),
            Self.headerMemory, Clients.maximumBody)
        if server == nil {
            hasFailed = true
            context.release()
            complain("libmicrohttpd cannot be started")
        }
        return server
    }
}

extension APIError {
    /// Sends the error without the library, as far as that is possible without blocking.
    func send(to descriptor: Int32) {
        let headers =
            response.headers + APIResponse.securityHeaders
            + [("Content-Length", "\(response.body.count)"), ("Connection", "close")]
        let head = headers.map { "\($0.name): \($0.value)\r\n" }.joined()
        // The reason phrase may be empty.
        let reason = status == 503 ? "Service Unavailable" : ""
        let bytes = Array("HTTP/1.1 \(status) \(reason)\r\n\(head)\r\n".utf8) + response.body
        let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
        _ = bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, flags) }
    }
}

/// Serves the API at a Unix socket and at TCP addresses, on threads of its own.
///
/// Publishing an event or answering an operation never waits for a client. The HTTP library is loaded when the first
/// client connects, so that starting costs no more than a socket and a sleeping thread.
package final class ControlServer: Sendable {
    private let clients: Clients
    private let thread = Mutex<WorkerThread?>(nil)

    /// Starts the server.
    ///
    /// - Parameters:
    ///   - socket: The Unix socket; it is removed when the server stops.
    ///   - addresses: The TCP addresses.
    ///   - access: The access control for TCP.
    ///   - routes: The routes.
    ///   - operations: The operations, for the status in the event stream.
    ///   - feed: The events.
    ///   - renew: Returns another socket when the file of the socket, whose path it gets, has been removed; nil if that
    ///     is not possible now, and whether this is not the first call for it.
    ///   - complain: Called once with the reason if no client can be served.
    /// - Throws: A `ControlProblem` when it cannot listen at an address, or when no thread can be started.
    package init(
        _ socket: ControlSocket?, addresses: [ListenAddress] = [], access: Access? = nil, routes: Routes,
        operations: any Operations, feed: EventFeed,
        renew: @escaping @Sendable (_ lost: PathBytes, _ isRepeated: Bool) -> ControlSocket? = { _, _ in nil },
        complain: @escaping @Sendable (String) -> Void
    ) throws(ControlProblem) {
        var network: [Int32] = []
        do throws(ControlProblem) {
            clients = try Clients(access: access, routes: routes, operations: operations, feed: feed)
            for address in addresses { network += try address.open() }
            let started = WorkerThread(name: "alight-control") { [clients, network] in
                ServerLoop(clients, socket, network: network, renew: renew, complain: complain).run()
                for descriptor in network { close(descriptor) }
            }
            guard let started else {
                throw ControlProblem("cannot start a thread", help: "raise the limit of processes (ulimit -u)")
            }
            thread.withLock { $0 = started }
        } catch {
            for descriptor in network { close(descriptor) }
            socket?.end()
            throw error
        }
    }

    /// Closes all connections, stops the thread, and removes the socket.
    package func stop() {
        let running = thread.withLock { $0.take() }
        clients.stop()
        running?.join()
    }

    deinit { stop() }
}

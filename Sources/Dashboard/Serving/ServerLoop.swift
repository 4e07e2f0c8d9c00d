import CAlightLinux
import CLibMicroHTTPD
import Glibc
import PluginProtocol

/// The state of the server's thread, and its loop.
///
/// It sleeps in poll(2), without a time limit while nobody is connected. Whatever takes long is done by the worker, and
/// its answer comes back by the inbox. A connection has one deadline, which nothing but a whole request moves, so that a
/// client that sends byte after byte is dropped like one that sends none.
final class ServerLoop {
    struct Parts {
        var access: Access?
        var routes: Routes
        var operations: any Operations
        var feed: EventFeed
        var worker: Worker
        var inbox: ControlServer.Inbox
        var complain: @Sendable (String) -> Void
    }

    private struct Connection {
        var way: APIRequest.Way
        /// When it is closed, unless something moves that.
        var deadline: ContinuousClock.Instant
        var isStream = false
    }

    /// A request that is being answered.
    struct Exchange {
        var number: UInt64
        var request: APIRequest
        var stream: EventStream?
        /// Bytes that are held for the client until it has taken them.
        var held = 0
    }

    /// Most bytes that are held for all clients together: slow ones could ask for more and more.
    private static let mostHeld = 48 << 20

    let parts: Parts
    private let local: Int32?
    private let network: [Int32]
    /// The library's server, once somebody has connected.
    private var server: OpaquePointer?
    private var hasFailed = false
    private var connections: [Int32: Connection] = [:]
    /// Connections that were refused, and when they are closed: at once they would take the answer along.
    private var refused: [(descriptor: Int32, until: ContinuousClock.Instant)] = []
    var exchanges: [OpaquePointer: Exchange] = [:]
    private var lastNumber: UInt64 = 0
    /// How it stood last, as text, and how often that was another text.
    private var status = (number: 0, text: "")
    private var nextStatus: ContinuousClock.Instant?
    private var isAskingStatus = false
    private var stopBy: ContinuousClock.Instant?
    private var now = ContinuousClock.now

    /// Most connections at once, and most of them by TCP, so that strangers leave room for the Unix socket.
    private static let mostConnections = 64
    private static let mostStrangers = 48
    /// Bytes of a request's header, and of its body.
    private static let mostHeader = 32 << 10
    /// What the library has for a header: more, so that one that is too long arrives, and is told so in the way of the API.
    private static let headerMemory = 128 << 10
    private static let mostBody = 64 << 10
    /// How long a whole request may take to arrive; also how long a connection may be idle.
    private static let arrival = Duration.seconds(15)
    /// How long the answer may take, with the time that the client needs to read it.
    private static let answer = Duration.seconds(60)
    private static let parting = Duration.seconds(1)
    private static let mostRefused = 16
    private static let statusPause = Duration.seconds(1)

    init(_ parts: Parts, _ local: Int32?, network: [Int32]) {
        self.parts = parts
        self.local = local
        self.network = network
    }

    func run() {
        parts.feed.setWake { [inbox = parts.inbox] in inbox.wake() }
        while true {
            wait()
            for message in parts.inbox.take() { take(message) }
            if stopBy == nil { acceptAll() }
            refreshStatus()
            wakeStreams()
            serve()
            expire()
            guard let stopBy else { continue }
            if connections.isEmpty || stopBy <= now { break }
        }
        for (descriptor, _) in refused { close(descriptor) }
        parts.feed.setWake(nil)
        parts.worker.stop()
        // The library ends the program when it is ended with somebody still waiting.
        if let server, exchanges.isEmpty { chm_stop(server) }
    }

    // MARK: Sleeping

    private func wait() {
        var descriptors = [pollfd(fd: parts.inbox.descriptor, events: Int16(POLLIN), revents: 0)]
        if stopBy == nil {
            descriptors += ([local].compactMap(\.self) + network).map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
        }
        if let server { descriptors.append(pollfd(fd: chm_descriptor(server), events: Int16(POLLIN), revents: 0)) }
        _ = cal_poll(&descriptors, UInt(descriptors.count), patience)
        now = .now
    }

    /// How many nanoseconds to sleep at most; negative for as long as nothing happens.
    private var patience: Int64 {
        if let server, chm_is_due(server) != 0 { return 0 }
        let streams = exchanges.values.compactMap { $0.stream?.deadline }
        let deadlines = connections.values.filter { !$0.isStream }.map(\.deadline)
        guard let first = (streams + deadlines + refused.map(\.until) + [nextStatus, stopBy].compactMap(\.self)).min()
        else { return -1 }
        let (seconds, attoseconds) = max(.zero, first - .now).components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000 + 1
    }

    private func serve() {
        guard let server else { return }
        // Each turn does what is there; a bound, so that one busy client can't keep others from being accepted.
        for _ in 0..<64 {
            chm_run(server)
            if chm_is_due(server) == 0 { break }
        }
    }

    private func expire() {
        for (descriptor, connection) in connections where !connection.isStream && connection.deadline <= now {
            drop(descriptor)
        }
        for (descriptor, until) in refused where until <= now { close(descriptor) }
        refused.removeAll { $0.until <= now }
        for (request, exchange) in exchanges {
            if let stream = exchange.stream, stream.isStuck(at: now) { drop(chm_connection(request)) }
        }
    }

    /// Ends a connection; the library finds that out by itself, and tells.
    private func drop(_ descriptor: Int32) {
        guard connections[descriptor] != nil else { return }
        shutdown(descriptor, Int32(SHUT_RDWR))
        connections[descriptor]?.deadline = now + Self.answer
    }

    // MARK: Messages

    private func take(_ message: ControlServer.Message) {
        switch message {
        case .answer(let number, let response):
            guard let (request, _) = exchanges.first(where: { $0.value.number == number }) else { return }
            send(response, to: request)
        case .status(let text):
            isAskingStatus = false
            if text != status.text, !text.isEmpty { status = (status.number + 1, text) }
        case .stop:
            stopBy = now + .milliseconds(500)
            for (request, exchange) in exchanges {
                if exchange.stream != nil {
                    chm_wake(request)
                } else {
                    send(Self.ending.response, to: request)
                }
            }
            let answering = Set(exchanges.keys.map { chm_connection($0) })
            for descriptor in connections.keys where !answering.contains(descriptor) { drop(descriptor) }
        }
    }

    private static let ending = APIError(503, "Alight is ending", help: "try again when it has been started again")

    /// Has the status made anew for those who follow it, once a second at most.
    private func refreshStatus() {
        let isWanted = exchanges.values.contains { $0.stream?.kinds.contains(.status) ?? false }
        guard isWanted, stopBy == nil else {
            nextStatus = nil
            return
        }
        guard nextStatus.map({ $0 <= now }) ?? true else { return }
        nextStatus = now + Self.statusPause
        guard !isAskingStatus else { return }
        isAskingStatus = parts.worker.submit { [operations = parts.operations, inbox = parts.inbox] in
            // What passes by itself is no change.
            var members = (try? operations.status().object) ?? [:]
            members["uptime"] = nil
            inbox.post(.status(members.isEmpty ? "" : JSONText.of(.object(members))))
        }
    }

    private func wakeStreams() {
        for (request, exchange) in exchanges {
            guard let stream = exchange.stream, stream.isResting, stream.hasNews(status, at: now) else { continue }
            stream.isResting = false
            chm_wake(request)
        }
    }

    // MARK: Connections

    private func acceptAll() {
        if let local { accept(local, .local) }
        for descriptor in network { accept(descriptor, .network) }
    }

    private func accept(_ listener: Int32, _ way: APIRequest.Way) {
        while true {
            let descriptor = cal_accept(listener)
            guard descriptor >= 0 else { return }
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

    // MARK: Requests

    private func arrived(_ pointer: OpaquePointer?) {
        guard let pointer else { return }
        let descriptor = chm_connection(pointer)
        let way = connections[descriptor]?.way ?? .network
        connections[descriptor]?.deadline = now + Self.answer
        lastNumber += 1
        do throws(APIError) {
            guard stopBy == nil else { throw Self.ending }
            let request = try Self.request(pointer, way)
            exchanges[pointer] = Exchange(number: lastNumber, request: request)
            if let response = try parts.access?.check(request) { return send(response, to: pointer) }
            let (service, names) = try parts.routes.find(request)
            try parts.access?.checkWrite(request)
            switch service {
            case .events: try begin(pointer, request, descriptor)
            case .answer(let answer):
                let isTaken = parts.worker.submit { [inbox = parts.inbox, number = lastNumber] in
                    do throws(APIError) {
                        inbox.post(.answer(number, try answer(request, names)))
                    } catch {
                        inbox.post(.answer(number, error.response))
                    }
                }
                guard isTaken else {
                    throw APIError(
                        503, "there is no thread to be had", help: "raise the limit of processes (ulimit -u)")
                }
            }
        } catch {
            send(error.response, to: pointer)
        }
    }

    private static func request(_ pointer: OpaquePointer, _ way: APIRequest.Way) throws(APIError) -> APIRequest {
        func header(_ name: String) -> String? { chm_header(pointer, name).map { String(cString: $0) } }
        try checkHead(pointer)
        guard let method = chm_method(pointer), let target = chm_target(pointer),
            var request = APIRequest(
                way: way, method: String(cString: method),
                target: Array(UnsafeRawBufferPointer(start: target, count: Int(strlen(target)))))
        else {
            throw APIError(400, "the request's target makes no sense", help: "escape what is no letter or digit as %XX")
        }
        request.host = header("Host")
        request.origin = header("Origin")
        request.authorization = header("Authorization")
        request.cookie = header("Cookie")
        request.contentType = header("Content-Type")
        request.lastEventID = header("Last-Event-ID")
        var size = 0
        let body = chm_body(pointer, &size)
        guard size <= mostBody else {
            throw APIError(413, "the body has \(size) bytes", help: "send at most \(mostBody)")
        }
        request.body = Array(UnsafeRawBufferPointer(start: body, count: size))
        return request
    }

    /// Refuses what a proxy in front could have understood in another way.
    private static func checkHead(_ pointer: OpaquePointer) throws(APIError) {
        func count(_ name: String) -> Int { Int(chm_header_count(pointer, name)) }
        func refusal(_ status: Int, _ message: String, help: String) -> APIError {
            var error = APIError(status, message, help: help)
            error.endsConnection = true
            return error
        }
        guard chm_header_size(pointer) <= mostHeader else {
            throw refusal(
                431, "the request's header has \(chm_header_size(pointer)) bytes", help: "send at most \(mostHeader)")
        }
        guard count("Transfer-Encoding") + count("Content-Length") <= 1 else {
            throw refusal(400, "the request has several lengths", help: "send one Content-Length, or chunks")
        }
        let needsHost = chm_version(pointer).map { String(cString: $0) } != "HTTP/1.0"
        guard count("Host") == 1 || count("Host") == 0 && !needsHost else {
            throw refusal(400, "the request has \(count("Host")) 'Host' headers", help: "send one")
        }
    }

    private func begin(_ pointer: OpaquePointer, _ request: APIRequest, _ descriptor: Int32) throws(APIError) {
        var kinds = Set(EventFeed.Kind.allCases)
        if let only = request.text("only") {
            kinds = []
            for word in only.split(separator: ",") {
                guard let kind = EventFeed.Kind(rawValue: String(word)) else {
                    throw APIError(400, "'\(word)' is no kind of event", help: "write attempt, file or status")
                }
                kinds.insert(kind)
            }
        }
        let recent = try Self.number(request, "recent", upTo: EventFeed.length)
        // A browser can't set the header when it comes for the first time.
        let last = (request.lastEventID ?? request.text("last_event_id")).flatMap { UInt64($0) }
        exchanges[pointer]?.stream = EventStream(
            parts.feed, kinds: kinds, after: last, recent: recent, at: now)
        connections[descriptor]?.isStream = true
        chm_add_header(pointer, "Content-Type", "text/event-stream")
        Self.addSecurity(pointer)
        chm_stream(pointer, 200)
    }

    private static func number(_ request: APIRequest, _ name: String, upTo most: Int) throws(APIError) -> Int {
        guard let text = request.text(name) else { return 0 }
        guard let number = Int(text), (0...most).contains(number) else {
            throw APIError(400, "'\(name)=\(text)' is no number from 0 to \(most)", help: "leave it out for none")
        }
        return number
    }

    private func more(_ pointer: OpaquePointer?, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard stopBy == nil, let pointer, let stream = exchanges[pointer]?.stream else { return -1 }
        return stream.fill(buffer, status, at: .now)
    }

    private func ended(_ pointer: OpaquePointer?, _ descriptor: Int32) {
        guard let pointer else { return }
        exchanges.removeValue(forKey: pointer)?.stream?.end()
        connections[descriptor]?.isStream = false
        connections[descriptor]?.deadline = now + Self.arrival
        if stopBy != nil { drop(descriptor) }
    }

    // MARK: Answers

    private static func addSecurity(_ pointer: OpaquePointer) {
        for (name, value) in APIResponse.securityHeaders { chm_add_header(pointer, name, value) }
    }

    private func send(_ response: APIResponse, to pointer: OpaquePointer) {
        let held = exchanges.values.reduce(0) { $0 + $1.held }
        guard response.body.count < 1 << 16 || held + response.body.count <= Self.mostHeld else {
            send(
                APIError(503, "too much is on its way to others", help: "ask again in a moment").response, to: pointer)
            return
        }
        exchanges[pointer]?.held = response.body.count
        for (name, value) in response.headers { chm_add_header(pointer, name, value) }
        Self.addSecurity(pointer)
        response.body.withUnsafeBytes {
            chm_answer(pointer, UInt32(response.status), $0.baseAddress, $0.count)
        }
    }
}

private func loop(_ context: UnsafeMutableRawPointer?) -> ServerLoop? {
    context.map { Unmanaged<ServerLoop>.fromOpaque($0).takeUnretainedValue() }
}

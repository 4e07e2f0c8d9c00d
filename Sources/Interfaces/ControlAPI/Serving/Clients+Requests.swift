import CAlightLinux
import CLibMicroHTTPD
import Foundation
import Glibc
import Synchronization
import System

// Requests and responses, on the thread of the connection.
extension Clients {
    private static let maximumHeader = 32 << 10
    /// The size limit of a body in bytes; the rest of a larger body is read and discarded.
    static let maximumBody = 64 << 10
    /// The maximum number of requests that open files, including the one whose file is being opened.
    private static let maximumOpeners = 17
    /// The time after which a waiting client that has shut down its sending side is considered gone.
    private static let grace = Duration.seconds(1)
    /// `POLLRDHUP` of Linux.
    private static let sendsNoMore: Int16 = 0x2000

    /// Answers a request; returns the status, 0 for no response.
    func arrived(_ pointer: OpaquePointer) -> UInt32 {
        let descriptor = chm_connection(pointer)
        let started = ContinuousClock.now
        let transport = connections.withLock { connections in
            connections[descriptor]?.deadline = started + Self.answer
            connections[descriptor]?.phase = .waiting
            return connections[descriptor]?.transport ?? .network
        }
        do throws(APIError) {
            let request = try Self.request(pointer, transport)
            if let response = try access?.check(request) { return send(response, to: pointer, descriptor) }
            let (service, names) = try routes.find(request)
            if isStopping {
                // A client of the event stream reconnects when the stream ends, and treats an end without a response
                // as final.
                if case .events = service { return 0 }
                throw Self.ending
            }
            try access?.checkWrite(request)
            switch service {
            case .events: return try follow(pointer, request, descriptor)
            case .answer(let answer, let opensFile):
                defer { if opensFile { openers.subtract(1, ordering: .relaxed) } }
                if opensFile, openers.add(1, ordering: .relaxed).newValue > Self.maximumOpeners {
                    throw APIError(
                        503, "too many requests wait for a file",
                        help: "a file system may not respond; try again later")
                }
                let turn = opensFile ? opening : answering
                try lock(turn, for: descriptor, since: started)
                defer { turn.unlock() }
                return send(try answer(request, names), to: pointer, descriptor)
            }
        } catch {
            return send(error.response, to: pointer, descriptor)
        }
    }

    /// Waits for the request's turn.
    ///
    /// Fails for a client that has disconnected in the meantime.
    private func lock(_ lock: NSLock, for descriptor: Int32, since started: ContinuousClock.Instant) throws(APIError) {
        guard lock.lock(before: Date(timeIntervalSinceNow: Self.answer / .seconds(1))) else { throw Self.late }
        let events = started + Self.grace <= .now ? Self.sendsNoMore : 0
        var polled = pollfd(fd: descriptor, events: events, revents: 0)
        guard cal_poll(&polled, 1, 0) == 0 else {
            lock.unlock()
            throw Self.gone
        }
    }

    /// Prepares the response if the memory limit allows it; returns the status, 0 if the client was already answered.
    private func send(_ response: APIResponse, to pointer: OpaquePointer, _ descriptor: Int32) -> UInt32 {
        let response = connections.withLock { connections -> APIResponse? in
            guard let connection = connections[descriptor], connection.phase != .abandoned else { return nil }
            let buffered = connections.values.reduce(0) { $0 + $1.buffered }
            let isTooMuch = response.body.count >= 1 << 16 && buffered + response.body.count > Self.maximumBuffered
            let error = APIError(503, "too many responses are being sent", help: "try again later")
            let sent = isTooMuch ? error.response : response
            connections[descriptor]?.phase = .sending
            connections[descriptor]?.buffered = sent.body.count
            return sent
        }
        guard let response, response.body.withUnsafeBytes({ chm_answer(pointer, $0.baseAddress, $0.count) }) == 0 else {
            return 0
        }
        for (name, value) in response.headers + APIResponse.securityHeaders { chm_add_header(pointer, name, value) }
        return UInt32(response.status)
    }

    /// Records that a request is over, with or without a response.
    func ended(_ stream: EventStream?, _ descriptor: Int32) {
        if let stream {
            stream.end()
            streams.withLock { $0[ObjectIdentifier(stream)] = nil }
        }
        connections.withLock { connections in
            guard let connection = connections[descriptor] else { return }
            connections[descriptor] = Connection(transport: connection.transport, deadline: .now + Self.arrival)
            if isStopping { shutdown(descriptor, Int32(SHUT_RDWR)) }
        }
    }

    func closed(_ descriptor: Int32) {
        connections.withLock { $0[descriptor] = nil }
        if isStopping { wake.wake() }
    }

    private static func request(_ pointer: OpaquePointer, _ transport: APIRequest.Transport) throws(APIError)
        -> APIRequest
    {
        func header(_ name: String) -> String? { chm_header(pointer, name).map { String(cString: $0) } }
        try checkHead(pointer)
        guard let method = chm_method(pointer), let target = chm_target(pointer),
            var request = APIRequest(
                transport: transport, method: String(cString: method),
                target: Array(UnsafeRawBufferPointer(start: target, count: Int(strlen(target)))))
        else {
            throw APIError(
                400, "invalid request target", help: "escape characters other than letters and digits as %XX")
        }
        (request.host, request.origin) = (header("Host"), header("Origin"))
        (request.authorization, request.cookie) = (header("Authorization"), header("Cookie"))
        request.contentType = header("Content-Type")
        request.lastEventID = header("Last-Event-ID")
        var size = 0
        let body = chm_body(pointer, &size)
        guard size <= maximumBody else {
            throw APIError(413, "the body has \(size) bytes", help: "send at most \(maximumBody)")
        }
        request.body = Array(UnsafeRawBufferPointer(start: body, count: size))
        return request
    }

    /// Refuses requests that a proxy in front could have interpreted differently.
    private static func checkHead(_ pointer: OpaquePointer) throws(APIError) {
        func count(_ name: String) -> Int { Int(chm_header_count(pointer, name)) }
        func refusal(_ status: Int, _ message: String, help: String) -> APIError {
            // The following bytes may not be a request.
            APIError(status, message, help: help, headers: ["Connection": "close"])
        }
        let size = chm_header_size(pointer)
        guard size <= maximumHeader else {
            throw refusal(431, "the request's header has \(size) bytes", help: "send at most \(maximumHeader)")
        }
        guard count("Transfer-Encoding") + count("Content-Length") <= 1 else {
            throw refusal(400, "the request has several lengths", help: "send one Content-Length, or chunks")
        }
        let needsHost = chm_version(pointer).map { String(cString: $0) } != "HTTP/1.0"
        guard count("Host") == 1 || count("Host") == 0 && !needsHost else {
            throw refusal(400, "the request has \(count("Host")) 'Host' headers", help: "send one")
        }
    }

    private static let gone = APIError(
        503, "the client disconnected before it was served",
        help: "keep the connection open until the response arrives")
    static let late = APIError(503, "the request timed out", help: "a file system may not respond; try again later")
    static let ending = APIError(503, "Alight is stopping", help: "try again after it has been started again")
}

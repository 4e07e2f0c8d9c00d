import CLibMicroHTTPD
import Glibc

// What is asked, as far as it is a request.
extension ServerLoop {
    private static let mostHeader = 32 << 10
    /// More of a body is read, and dropped.
    static let mostBody = 64 << 10

    func arrived(_ pointer: OpaquePointer?) {
        guard let pointer else { return }
        let descriptor = chm_connection(pointer)
        let way = connections[descriptor]?.way ?? .network
        connections[descriptor]?.deadline = now + Self.answer
        lastNumber += 1
        do throws(APIError) {
            guard stopBy == nil else { throw Self.ending }
            let request = try Self.request(pointer, way)
            exchanges[pointer] = Exchange(number: lastNumber, request: request, begun: now)
            if let response = try parts.access?.check(request) { return send(response, to: pointer) }
            let (service, names) = try parts.routes.find(request)
            try parts.access?.checkWrite(request)
            switch service {
            case .events: try begin(pointer, request, descriptor)
            case .answer(let answer): try submit(request, names, answer, to: parts.worker)
            case .file(let answer): try submit(request, names, answer, to: parts.files)
            }
        } catch {
            send(error.response, to: pointer)
        }
    }

    private func submit(
        _ request: APIRequest, _ names: [String], _ answer: @escaping Routes.Answer, to worker: Worker
    ) throws(APIError) {
        let submission = worker.submit(lastNumber) { [inbox = parts.inbox, number = lastNumber] in
            do throws(APIError) {
                inbox.post(.answer(number, try answer(request, names)))
            } catch {
                inbox.post(.answer(number, error.response))
            }
        }
        switch submission {
        case .taken: break
        case .full:
            throw APIError(
                503, "too many wait for a file", help: "a file system may hang; ask again when it answers")
        case .withoutThread:
            throw APIError(503, "there is no thread to be had", help: "raise the limit of processes (ulimit -u)")
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

    func ended(_ pointer: OpaquePointer?, _ descriptor: Int32) {
        guard let pointer else { return }
        exchanges.removeValue(forKey: pointer)?.stream?.end()
        connections[descriptor]?.isStream = false
        connections[descriptor]?.deadline = now + Self.arrival
        if stopBy != nil { drop(descriptor) }
    }
}

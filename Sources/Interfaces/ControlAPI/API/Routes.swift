import JSON

/// The routes of the server.
package struct Routes: Sendable {
    typealias Answer = @Sendable (APIRequest, [String]) throws(APIError) -> APIResponse

    /// The handling of a path and method.
    enum Service: Sendable {
        case answer(Answer)
        /// A response for which a file is opened, possibly on a file system that hangs. No other request may wait for
        /// it.
        case file(Answer)
        /// The stream of events.
        case events
    }

    fileprivate struct Route: Sendable {
        var method: String
        /// The components of the path; `*` matches any.
        var path: [String]
        /// The only kind of connection for which it is served; nil for all.
        var way: APIRequest.Transport?
        var service: Service
    }

    private var routes: [Route] = []

    /// Creates the routes of the API.
    ///
    /// - Parameters:
    ///   - operations: The operations of the instance.
    ///   - metrics: Returns the text of `/metrics`; nil if there is none.
    package init(_ operations: any Operations, metrics: (@Sendable () -> String)? = nil) {
        add("GET", "/v1/status") { _, _ throws(APIError) in APIResponse(json: try operations.status()) }
        add("GET", "/v1/rules") { _, _ throws(APIError) in APIResponse(json: try operations.rules()) }
        add("GET", "/v1/roots") { _, _ throws(APIError) in APIResponse(json: try operations.roots()) }
        add("GET", "/v1/history") { _, _ throws(APIError) in APIResponse(json: try operations.history()) }
        add("GET", "/v1/jobs") { request, _ throws(APIError) in
            APIResponse(json: try operations.jobs(try JobsQuery(request)))
        }
        add("GET", "/v1/jobs/*") { _, names throws(APIError) in APIResponse(json: try operations.job(names[0])) }
        let input: Answer = { _, names throws(APIError) in
            let (bytes, type) = try operations.input(of: names[0])
            return APIResponse(type: type, headers: [("Content-Disposition", "inline")], body: bytes)
        }
        routes.append(Route(method: "GET", path: ["v1", "jobs", "*", "input"], service: .file(input)))
        add("POST", "/v1/jobs/*/retry") { request, names throws(APIError) in
            try Self.refuseMembers(of: request, but: [])
            return APIResponse(json: try operations.retry(names[0]))
        }
        add("POST", "/v1/jobs/*/discard") { request, names throws(APIError) in
            try Self.refuseMembers(of: request, but: [])
            return APIResponse(json: try operations.discard(names[0]))
        }
        add("POST", "/v1/reload") { request, _ throws(APIError) in
            try Self.refuseMembers(of: request, but: [])
            try operations.reload()
            return APIResponse(202, json: ["accepted": true])
        }
        add("POST", "/v1/rescan") { request, _ throws(APIError) in
            try Self.refuseMembers(of: request, but: [])
            try operations.rescan()
            return APIResponse(202, json: ["accepted": true])
        }
        add("POST", "/v1/pause") { request, _ throws(APIError) in
            APIResponse(json: try operations.pause(try Self.rule(request)))
        }
        add("POST", "/v1/resume") { request, _ throws(APIError) in
            APIResponse(json: try operations.resume(try Self.rule(request)))
        }
        for verb in ["retry", "discard", "undo", "apply"] {
            add("POST", "/v1/\(verb)", way: .local) { request, _ throws(APIError) in
                APIResponse(json: try operations.carryOut(verb, try Self.members(request)))
            }
        }
        routes.append(Route(method: "GET", path: ["v1", "events"], service: .events))
        if let metrics {
            add("GET", "/metrics") { _, _ throws(APIError) in
                APIResponse(type: "text/plain; version=0.0.4; charset=utf-8", body: Array(metrics().utf8))
            }
        }
    }

    private mutating func add(
        _ method: String, _ path: String, way: APIRequest.Transport? = nil,
        _ answer: @escaping @Sendable (APIRequest, [String]) throws(APIError) -> APIResponse
    ) {
        let names = path.split(separator: "/").map(String.init)
        routes.append(Route(method: method, path: names, way: way, service: .answer(answer)))
    }

    /// Adds a route that is only served by TCP, as browsers do not connect to the Unix socket.
    package mutating func addPage(
        _ method: String, _ path: String,
        _ answer: @escaping @Sendable (APIRequest, [String]) throws(APIError) -> APIResponse
    ) {
        add(method, path, way: .network, answer)
    }

    /// Finds the route of a request.
    ///
    /// - Returns: The service, and the path components that match the wildcards.
    /// - Throws: An error when the path does not exist, or does not support the method.
    func find(_ request: APIRequest) throws(APIError) -> (service: Service, names: [String]) {
        let method = request.method == "HEAD" ? "GET" : request.method
        var allowed: [String] = []
        for route in routes where route.way == nil || route.way == request.way {
            guard let names = route.names(request.path) else { continue }
            if route.method == method { return (route.service, names) }
            allowed += route.method == "GET" ? ["GET", "HEAD"] : [route.method]
        }
        let path = "/" + request.path.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
        guard allowed.isEmpty else {
            var error = APIError(
                405, "'\(path)' does not allow the method '\(method)'",
                help: "use \(allowed.joined(separator: " or "))")
            error.allowed = allowed
            throw error
        }
        throw APIError(404, "there is no '\(path)'", help: "docs/openapi.yaml lists all paths")
    }

    // MARK: Bodies

    /// Returns the members of the JSON object in the body; empty for an empty body.
    private static func members(_ request: APIRequest) throws(APIError) -> [String: JSONValue] {
        guard !request.body.isEmpty else { return [:] }
        let help = "write '{}', or leave it empty"
        let value: JSONValue
        do throws(JSONError) {
            value = try JSONValue(reading: request.body)
        } catch {
            throw APIError(400, "the body \(error.clause)", help: help)
        }
        guard let members = value.object else { throw APIError(400, "the body is not a JSON object", help: help) }
        return members
    }

    private static func refuseMembers(of request: APIRequest, but known: Set<String>) throws(APIError) {
        guard let name = try members(request).keys.sorted().first(where: { !known.contains($0) }) else { return }
        let help = known.isEmpty ? "write '{}', or leave the body empty" : "write '{\"rule\": \"…\"}' or '{}'"
        throw APIError(400, "unknown member '\(name)' in the body", help: help)
    }

    private static func rule(_ request: APIRequest) throws(APIError) -> String? {
        try refuseMembers(of: request, but: ["rule"])
        guard let value = try members(request)["rule"] else { return nil }
        guard let name = value.string else {
            throw APIError(400, "'rule' is not a string", help: "write '{\"rule\": \"…\"}', or '{}' for all rules")
        }
        return name
    }
}

extension Routes.Route {
    /// Returns the components that match the wildcards; nil if the path does not match.
    fileprivate func names(_ asked: [[UInt8]]) -> [String]? {
        guard asked.count == path.count else { return nil }
        var names: [String] = []
        for (part, bytes) in zip(path, asked) {
            if part == "*", !bytes.isEmpty {
                names.append(String(decoding: bytes, as: UTF8.self))
            } else if !part.utf8.elementsEqual(bytes) {
                return nil
            }
        }
        return names
    }
}

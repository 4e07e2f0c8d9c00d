import JSON

/// The routes of the server.
package struct Routes: Sendable {
    package typealias Answer = @Sendable (APIRequest, [String]) throws(APIError) -> APIResponse

    /// The handling of a path and method.
    enum Service: Sendable {
        /// A response; if a file is opened for it, possibly on a file system that hangs, no other request may wait for
        /// it.
        case answer(Answer, opensFile: Bool = false)
        /// The stream of events.
        case events
    }

    fileprivate struct Route: Sendable {
        var method: String
        /// The components of the path; `*` matches any.
        var path: [String]
        /// The only kind of connection for which it is served; nil for all.
        var transport: APIRequest.Transport?
        var service: Service

        /// Returns the components that match the wildcards; nil if the path does not match.
        func names(_ asked: [[UInt8]]) -> [String]? {
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

    private var routes: [Route] = []

    /// Creates the routes of the API.
    ///
    /// - Parameters:
    ///   - operations: The operations of the instance.
    ///   - metrics: Returns the text of `/metrics`; nil if there is none.
    package init(_ operations: any Operations, metrics: (@Sendable () -> String)? = nil) {
        addReading("status") { _, _ throws(APIError) in try operations.status() }
        addReading("rules") { _, _ throws(APIError) in try operations.rules() }
        addReading("roots") { _, _ throws(APIError) in try operations.roots() }
        addReading("history") { _, _ throws(APIError) in try operations.history() }
        addReading("jobs") { request, _ throws(APIError) in try operations.jobs(try JobsQuery(request)) }
        addReading("jobs/*") { _, names throws(APIError) in try operations.job(names[0]) }
        let input: Answer = { _, names throws(APIError) in
            let (bytes, type) = try operations.input(of: names[0])
            return APIResponse(type: type, headers: [("Content-Disposition", "inline")], body: bytes)
        }
        add("GET", "/v1/jobs/*/input", .answer(input, opensFile: true))
        addCommand("jobs/*/retry") { job, _ throws(APIError) in try operations.retry(job) }
        addCommand("jobs/*/discard") { job, _ throws(APIError) in try operations.discard(job) }
        addCommand("reload", status: 202) { _, _ throws(APIError) in
            try operations.reload()
            return ["accepted": true]
        }
        addCommand("rescan", status: 202) { _, _ throws(APIError) in
            try operations.rescan()
            return ["accepted": true]
        }
        addCommand("pause", known: ["rule"]) { _, body throws(APIError) in try operations.pause(try Self.rule(body)) }
        addCommand("resume", known: ["rule"]) { _, body throws(APIError) in try operations.resume(try Self.rule(body)) }
        for verb in ["retry", "discard", "undo", "apply"] {
            addCommand(verb, transport: .local, known: nil) { _, body throws(APIError) in
                try operations.carryOut(verb, body)
            }
        }
        add("GET", "/v1/events", .events)
        if let metrics {
            let answer: Answer = { _, _ in
                APIResponse(type: PrometheusRegistry.contentType, body: Array(metrics().utf8))
            }
            add("GET", "/metrics", .answer(answer))
        }
    }

    private mutating func addReading(
        _ path: String, _ read: @escaping @Sendable (APIRequest, [String]) throws(APIError) -> JSONValue
    ) {
        let answer: Answer = { request, names throws(APIError) in APIResponse(json: try read(request, names)) }
        add("GET", "/v1/\(path)", .answer(answer))
    }

    /// Adds a command, which gets the id in the path and the members of the body; nil allows all of them.
    private mutating func addCommand(
        _ path: String, status: Int = 200, transport: APIRequest.Transport? = nil, known: Set<String>? = [],
        _ command: @escaping @Sendable (String, [String: JSONValue]) throws(APIError) -> JSONValue
    ) {
        let answer: Answer = { request, names throws(APIError) in
            let body = try Self.members(request, known: known)
            return APIResponse(status, json: try command(names.first ?? "", body))
        }
        add("POST", "/v1/\(path)", transport: transport, .answer(answer))
    }

    private mutating func add(
        _ method: String, _ path: String, transport: APIRequest.Transport? = nil, _ service: Service
    ) {
        let names = path.split(separator: "/").map(String.init)
        routes.append(Route(method: method, path: names, transport: transport, service: service))
    }

    /// Adds a route that is only served by TCP, as browsers do not connect to the Unix socket.
    package mutating func addPage(_ method: String, _ path: String, _ answer: @escaping Answer) {
        add(method, path, transport: .network, .answer(answer))
    }

    /// Finds the route of a request.
    ///
    /// - Returns: The service, and the path components that match the wildcards.
    /// - Throws: An error when the path does not exist, or does not support the method.
    func find(_ request: APIRequest) throws(APIError) -> (service: Service, names: [String]) {
        let method = request.method == "HEAD" ? "GET" : request.method
        var allowed: [String] = []
        for route in routes where route.transport == nil || route.transport == request.transport {
            guard let names = route.names(request.path) else { continue }
            if route.method == method { return (route.service, names) }
            allowed += route.method == "GET" ? ["GET", "HEAD"] : [route.method]
        }
        let path = "/" + request.path.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
        guard allowed.isEmpty else {
            throw APIError(
                405, "'\(path)' does not allow the method '\(method)'",
                help: "use \(allowed.joined(separator: " or "))",
                headers: ["Allow": allowed.joined(separator: ", ")])
        }
        throw APIError(404, "there is no '\(path)'", help: "docs/openapi.yaml lists all paths")
    }

    // MARK: Bodies

    /// Returns the members of the JSON object in the body; empty for an empty body.
    ///
    /// - Throws: An error if the body is not such an object, or has a member that is not known; nil for any names.
    private static func members(
        _ request: APIRequest, known: Set<String>?
    ) throws(APIError) -> [String: JSONValue] {
        guard !request.body.isEmpty else { return [:] }
        let help = "write '{}', or leave it empty"
        let value: JSONValue
        do throws(JSONError) {
            value = try JSONValue(reading: request.body)
        } catch {
            throw APIError(400, "the body \(error.clause)", help: help)
        }
        guard let members = value.object else { throw APIError(400, "the body is not a JSON object", help: help) }
        if let known, let name = members.keys.sorted().first(where: { !known.contains($0) }) {
            let help = known.isEmpty ? "write '{}', or leave the body empty" : "write '{\"rule\": \"…\"}' or '{}'"
            throw APIError(400, "unknown member '\(name)' in the body", help: help)
        }
        return members
    }

    private static func rule(_ body: [String: JSONValue]) throws(APIError) -> String? {
        guard let value = body["rule"] else { return nil }
        if let name = value.string { return name }
        throw APIError(400, "'rule' is not a string", help: "write '{\"rule\": \"…\"}', or '{}' for all rules")
    }
}

import JSON

/// The routes of the server.
package struct Routes: Sendable {
    package typealias Answer = @Sendable (APIRequest, [String]) throws(APIError) -> APIResponse

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
        var transport: APIRequest.Transport?
        var service: Service
    }

    private var routes: [Route] = []

    /// Creates the routes of the API.
    ///
    /// - Parameters:
    ///   - operations: The operations of the instance.
    ///   - metrics: Returns the text of `/metrics`; nil if there is none.
    package init(_ operations: any Operations, metrics: (@Sendable () -> String)? = nil) {
        let reads: [(String, @Sendable () throws(APIError) -> JSONValue)] = [
            ("status", operations.status), ("rules", operations.rules), ("roots", operations.roots),
            ("history", operations.history),
        ]
        for (path, read) in reads {
            add("GET", "/v1/\(path)") { _, _ throws(APIError) in APIResponse(json: try read()) }
        }
        add("GET", "/v1/jobs") { request, _ throws(APIError) in
            APIResponse(json: try operations.jobs(try JobsQuery(request)))
        }
        add("GET", "/v1/jobs/*") { _, names throws(APIError) in APIResponse(json: try operations.job(names[0])) }
        let input: Answer = { _, names throws(APIError) in
            let (bytes, type) = try operations.input(of: names[0])
            return APIResponse(type: type, headers: [("Content-Disposition", "inline")], body: bytes)
        }
        add("GET", "/v1/jobs/*/input", .file(input))
        let jobCommands: [(String, @Sendable (String) throws(APIError) -> JSONValue)] = [
            ("retry", operations.retry), ("discard", operations.discard),
        ]
        for (verb, command) in jobCommands {
            add("POST", "/v1/jobs/*/\(verb)") { request, names throws(APIError) in
                _ = try Self.members(request, known: [])
                return APIResponse(json: try command(names[0]))
            }
        }
        let commands: [(String, @Sendable () throws(APIError) -> Void)] = [
            ("reload", operations.reload), ("rescan", operations.rescan),
        ]
        for (verb, command) in commands {
            add("POST", "/v1/\(verb)") { request, _ throws(APIError) in
                _ = try Self.members(request, known: [])
                try command()
                return APIResponse(202, json: ["accepted": true])
            }
        }
        let ruleCommands: [(String, @Sendable (String?) throws(APIError) -> JSONValue)] = [
            ("pause", operations.pause), ("resume", operations.resume),
        ]
        for (verb, command) in ruleCommands {
            add("POST", "/v1/\(verb)") { request, _ throws(APIError) in
                APIResponse(json: try command(try Self.rule(request)))
            }
        }
        for verb in ["retry", "discard", "undo", "apply"] {
            add("POST", "/v1/\(verb)", transport: .local) { request, _ throws(APIError) in
                APIResponse(json: try operations.carryOut(verb, try Self.members(request)))
            }
        }
        add("GET", "/v1/events", .events)
        if let metrics {
            add("GET", "/metrics") { _, _ throws(APIError) in
                APIResponse(type: PrometheusRegistry.contentType, body: Array(metrics().utf8))
            }
        }
    }

    private mutating func add(
        _ method: String, _ path: String, transport: APIRequest.Transport? = nil, _ answer: @escaping Answer
    ) {
        add(method, path, transport: transport, .answer(answer))
    }

    private mutating func add(
        _ method: String, _ path: String, transport: APIRequest.Transport? = nil, _ service: Service
    ) {
        let names = path.split(separator: "/").map(String.init)
        routes.append(Route(method: method, path: names, transport: transport, service: service))
    }

    /// Adds a route that is only served by TCP, as browsers do not connect to the Unix socket.
    package mutating func addPage(_ method: String, _ path: String, _ answer: @escaping Answer) {
        add(method, path, transport: .network, answer)
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
        _ request: APIRequest, known: Set<String>? = nil
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

    private static func rule(_ request: APIRequest) throws(APIError) -> String? {
        guard let value = try members(request, known: ["rule"])["rule"] else { return nil }
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

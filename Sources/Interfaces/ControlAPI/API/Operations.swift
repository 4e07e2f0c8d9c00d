package import JSON

/// The operations of a running instance.
///
/// Called on a thread that may block for a short time, never on the engine's thread.
package protocol Operations: Sendable {
    func status() throws(APIError) -> JSONValue
    func rules() throws(APIError) -> JSONValue
    func roots() throws(APIError) -> JSONValue
    func history() throws(APIError) -> JSONValue
    func jobs(_ query: JobsQuery) throws(APIError) -> JSONValue
    func job(_ id: String) throws(APIError) -> JSONValue
    /// Returns the bytes of a job's image, and their type.
    func input(of id: String) throws(APIError) -> (bytes: [UInt8], type: String)
    /// Carries out a command for jobs: `retry`, `discard`, `undo` or `apply`, with the members of its body.
    func carryOut(_ verb: String, _ body: [String: JSONValue]) throws(APIError) -> JSONValue
    func retry(_ id: String) throws(APIError) -> JSONValue
    func discard(_ id: String) throws(APIError) -> JSONValue
    func reload() throws(APIError)
    func rescan() throws(APIError)
    /// Pauses a rule, or all rules with nil.
    func pause(_ rule: String?) throws(APIError) -> JSONValue
    func resume(_ rule: String?) throws(APIError) -> JSONValue
}

/// A query for jobs, as written by the client.
package struct JobsQuery: Sendable, Hashable {
    package var states: [String]
    package var rule: String?
    /// A path or a glob, as bytes.
    package var path: [UInt8]?
    package var since: String?
    package var limit: Int
    package var before: String?

    package static let mostJobs = 1000

    package init(
        states: [String], rule: String? = nil, path: [UInt8]? = nil, since: String? = nil, limit: Int,
        before: String? = nil
    ) {
        (self.states, self.rule, self.path, self.since) = (states, rule, path, since)
        (self.limit, self.before) = (limit, before)
    }

    /// Parses a query.
    ///
    /// - Throws: The error for an invalid parameter.
    init(_ request: APIRequest) throws(APIError) {
        for name in request.query.keys
        where !["state", "rule", "path", "since", "limit", "before"].contains(name) {
            throw APIError(
                400, "unknown query parameter '\(name)'", help: "use state, rule, path, since, limit or before")
        }
        self.init(
            states: request.text("state").map { $0.split(separator: ",").map(String.init) } ?? [],
            rule: request.text("rule"), path: request.query["path"], since: request.text("since"),
            limit: try request.number("limit", in: 1...Self.mostJobs, otherwise: 100), before: request.text("before"))
    }
}

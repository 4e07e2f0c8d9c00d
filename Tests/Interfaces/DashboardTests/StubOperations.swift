import ControlAPI
import JSON
import Synchronization
import System
import TestKit

/// Operations that return their own arguments, and record the calls.
final class StubOperations: Operations {
    let requests = Mutex<[String]>([])
    /// While this is set, every response waits.
    let isStuck = Mutex(false)
    /// Whether a response has waited.
    let hasWaited = Mutex(false)
    /// While this is set, no file can be read.
    let isFileStuck = Mutex(false)

    private func record(_ text: String) -> JSONValue {
        while isStuck.withLock({ $0 }) {
            hasWaited.withLock { $0 = true }
            Deadline.pause(.milliseconds(1))
        }
        requests.withLock { $0.append(text) }
        return ["asked": .string(text)]
    }

    func status() throws(APIError) -> JSONValue { ["state": "running", "uptime": 1] }
    func rules() throws(APIError) -> JSONValue { record("rules") }
    func roots() throws(APIError) -> JSONValue { record("roots") }
    func history() throws(APIError) -> JSONValue { record("history") }
    func jobs(_ query: JobsQuery) throws(APIError) -> JSONValue {
        record("jobs \(query.states) \(query.rule ?? "-") \(query.limit)")
    }
    func job(_ id: String) throws(APIError) -> JSONValue {
        if id == "NONE" { throw APIError(404, "there is no job 'NONE'", help: "look") }
        return record("job \(id)")
    }
    func input(of id: String) throws(APIError) -> (bytes: [UInt8], type: String) {
        requests.withLock { $0.append("input \(id)") }
        while isFileStuck.withLock({ $0 }) { Deadline.pause(.milliseconds(1)) }
        return (Array(repeating: 7, count: 2_000_000), "image/png")
    }
    func carryOut(_ verb: String, _ body: [String: JSONValue]) throws(APIError) -> JSONValue {
        record("\(verb) \(body.line)")
    }
    func retry(_ id: String) throws(APIError) -> JSONValue { record("retry \(id)") }
    func discard(_ id: String) throws(APIError) -> JSONValue { record("discard \(id)") }
    func reload() throws(APIError) { _ = record("reload") }
    func rescan() throws(APIError) { _ = record("rescan") }
    func pause(_ rule: String?) throws(APIError) -> JSONValue { record("pause \(rule ?? "-")") }
    func resume(_ rule: String?) throws(APIError) -> JSONValue { record("resume \(rule ?? "-")") }
}

/// Calls the body with a server at a socket in a temporary directory.
func withServer(
    _ operations: StubOperations = StubOperations(),
    feed: EventFeed = EventFeed(now: Timestamp(seconds: 1, nanoseconds: 0)),
    _ body: (PathBytes) throws -> Void
) throws {
    try withTempTree { tree in
        let path = tree.path("run/control.sock")
        let server = try ControlServer(
            try ControlSocket(at: path), routes: Routes(operations), operations: operations, feed: feed,
            complain: { _ in })
        defer { server.stop() }
        try body(path)
    }
}

import ControlAPI
import JSON
import Synchronization
import System
import TestKit

/// Operations that return their own arguments, and record the calls.
final class StubOperations: Operations {
    let told = Mutex<[String]>([])
    /// While this is set, every response waits.
    let isStuck = Mutex(false)
    /// While this is set, no file can be read.
    let isFileStuck = Mutex(false)

    private func note(_ text: String) -> JSONValue {
        while isStuck.withLock({ $0 }) { Deadline.pause(.milliseconds(1)) }
        told.withLock { $0.append(text) }
        return ["asked": .string(text)]
    }

    func status() throws(APIError) -> JSONValue { ["state": "running", "uptime": 1] }
    func rules() throws(APIError) -> JSONValue { note("rules") }
    func roots() throws(APIError) -> JSONValue { note("roots") }
    func history() throws(APIError) -> JSONValue { note("history") }
    func jobs(_ query: JobsQuery) throws(APIError) -> JSONValue {
        note("jobs \(query.states) \(query.rule ?? "-") \(query.limit)")
    }
    func job(_ id: String) throws(APIError) -> JSONValue {
        if id == "NONE" { throw APIError(404, "there is no job 'NONE'", help: "look") }
        return note("job \(id)")
    }
    func input(of id: String) throws(APIError) -> (bytes: [UInt8], type: String) {
        told.withLock { $0.append("input \(id)") }
        while isFileStuck.withLock({ $0 }) { Deadline.pause(.milliseconds(1)) }
        return (Array(repeating: 7, count: 2_000_000), "image/png")
    }
    func carryOut(_ verb: String, _ body: [String: JSONValue]) throws(APIError) -> JSONValue {
        note("\(verb) \(body.line)")
    }
    func retry(_ id: String) throws(APIError) -> JSONValue { note("retry \(id)") }
    func discard(_ id: String) throws(APIError) -> JSONValue { note("discard \(id)") }
    func reload() throws(APIError) { _ = note("reload") }
    func rescan() throws(APIError) { _ = note("rescan") }
    func pause(_ rule: String?) throws(APIError) -> JSONValue { note("pause \(rule ?? "-")") }
    func resume(_ rule: String?) throws(APIError) -> JSONValue { note("resume \(rule ?? "-")") }
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

import Foundation
import Glibc
import JSON
import PluginProtocol
import System
import Testing
import TestKit

/// `Plugin` in a separate program, called as Alight calls it.
struct PluginTests {
    private static let stub = Places.products.appending("stub-plugin")

    private static func request(
        _ play: String, id: String = "1", rules: String = "/srv/rules/a.yaml", with: [String: JSONValue] = [:],
        path: [UInt8] = Array("/srv/in/a".utf8)
    ) -> PluginRequest {
        var event = PluginEvent(
            event: "created", path: String(decoding: path, as: UTF8.self), relative: "a", root: "/srv/in",
            origin: "live", type: "file", size: 1, mtime: "2026-11-21T07:04:25Z", btime: nil, mode: "0644", uid: 0,
            gid: 0, nlink: 1, id: "1", time: "2026-11-21T07:04:25Z")
        if String(validating: path, as: UTF8.self) == nil { event.pathBase64 = Data(path).base64EncodedString() }
        return PluginRequest(
            id: id, attempt: 2, maxAttempts: 5, deadline: "2099-01-01T00:00:00Z",
            rule: RuleReference(name: "r", file: rules, line: 1),
            with: .object(with.merging(["play": .string(play)]) { $1 }), scratch: "/tmp", events: [event])
    }

    private static func line(_ value: JSONValue) -> String { value.line + "\n" }

    private static func run(line request: PluginRequest) -> String {
        line(.object((request.json.object ?? [:]).merging(["type": "run"]) { $1 }))
    }

    /// Starts the stub with a file as standard input; for `serve`, the shell command `then` supplies further input.
    private static func start(_ tree: borrowing TemporaryTree, _ verb: String, _ input: String, then: String = "true")
        -> RunningProgram
    {
        TestFile.write(tree.path("input"), input)
        let script =
            verb == "serve" ? "{ cat input; \(then); } | exec '\(stub)' serve" : "exec '\(stub)' \(verb) <input"
        return RunningProgram("/bin/sh", ["-c", script], in: tree.root, output: tree.path("said"))
    }

    private static func messages(_ program: RunningProgram) -> [[String: JSONValue]] {
        program.lines.compactMap { JSONValue(json: $0.utf8)?.object }
    }

    private static func answer(_ request: PluginRequest) throws -> (response: PluginResponse, error: String) {
        try withTempTree { tree in
            let program = start(tree, "run", String(decoding: try request.encodedBytes(), as: UTF8.self))
            let status = program.wait()
            #expect(status == 0, "\(program.error)")
            let (output, error) = (program.output, program.error)
            return (try #require(PluginResponse(record: output.utf8)), error)
        }
    }

    @Test(arguments: [
        ("retry", PluginResponse(.retry, message: "busy", code: "busy", retryAfter: 5)),
        ("not-ready", PluginResponse(.notReady, message: "not yet")),
        ("skipped", PluginResponse(.skipped, message: "nothing to do")),
        ("failed", PluginResponse(.failed, message: "no", code: "no")),
        ("mistake", PluginResponse(.failed, message: "a mistake", code: "error")),
    ])
    func `a thrown error becomes an outcome`(_ play: String, _ expected: PluginResponse) throws {
        #expect(try Self.answer(Self.request(play)).response == expected)
    }

    @Test func `names are exact bytes, and relative paths are relative to the rules file`() throws {
        let path = Array("/srv/in/caf".utf8) + [0xE9]
        let name: JSONValue = ["base64": .string(Data([0x6F, 0xE9]).base64EncodedString())]
        let response = try Self.answer(Self.request("", with: ["to": name], path: path)).response
        #expect(response.outputs?.map(\.bytes) == [path, Array("/srv/rules/o".utf8) + [0xE9]])
        let absolute = try Self.answer(Self.request("", with: ["to": "/out/"])).response
        #expect(absolute.outputs?.last == PluginPath("/out/"))
    }

    @Test func `printed lines go to the log, along with progress and lines with levels`() throws {
        let (response, error) = try Self.answer(Self.request("print"))
        #expect(response.outcome == .succeeded)
        #expect(error.contains("this is no response"))
        #expect(error.contains("<4>two\n<4>lines\n"))
        #expect(error.contains(#"{"message":"half","progress":0.5}"#))
    }

    @Test func `a plugin describes itself and refuses other verbs and invalid requests`() {
        withTempTree { tree in
            let described = Self.start(tree, "describe", "")
            let (status, output) = (described.wait(), described.output)
            #expect(status == 0)
            let description = JSONValue(json: output.utf8)?.object
            #expect(description?["name"] == "stub" && description?["concurrent"] == 8)
            let other = Self.start(tree, "dance", "").wait()
            #expect(other == 64)
            let garbage = Self.start(tree, "run", "garbage").wait()
            #expect(garbage == 65)
            let empty = Self.start(tree, "run", "").wait()
            #expect(empty == 65)
        }
    }

    @Test func `SIGTERM cancels the task and terminates a handler that ignores the cancellation`() async throws {
        for (play, expected) in [("wait", Int32(0)), ("stubborn", 128 + SIGTERM)] {
            try await Blocking.run {
                try withTempTree { tree in
                    let request = String(decoding: try Self.request(play).encodedBytes(), as: UTF8.self)
                    TestFile.write(tree.path("input"), request)
                    // The shell opens the file, so that the descriptor is shared.
                    let program = RunningProgram(
                        "/bin/sh", ["-c", "exec '\(Self.stub)' run <input"], in: tree.root, output: tree.path("said"))
                    let handles = Deadline.wait { Self.takesTerm(program.pid) }
                    #expect(handles)
                    program.signal(SIGTERM)
                    let (status, output) = (program.wait(), program.output)
                    #expect(status == expected)
                    #expect(output.contains(#""outcome":"retry""#) == (play == "wait"))
                }
            }
        }
    }

    /// Whether the process has installed a handler for SIGTERM.
    private static func takesTerm(_ process: pid_t) -> Bool {
        let status =
            TestFile.text(PathBytes("/proc/\(process)/status")) ?? ""
        guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("SigCgt:") }),
            let mask = UInt64(line.split(separator: "\t").last ?? "", radix: 16)
        else { return false }
        return mask & (1 << UInt64(SIGTERM - 1)) != 0
    }

    // MARK: - serve

    @Test func `serve answers each request once and exits at the end of its input`() throws {
        withTempTree { tree in
            var input = Self.line(["type": "hello", "protocol": 1, "capabilities": ["cancel", "progress"]])
            input += Self.line(["type": "future"]) + "no JSON\n"
            for (id, play) in [("a", "print"), ("b", "mistake"), ("c", "")] {
                input += Self.run(line: Self.request(play, id: id))
            }
            input += Self.line(["type": "run", "id": "d"]) + Self.line(["type": "ping", "n": 7])
            let program = Self.start(tree, "serve", input)
            let status = program.wait()
            let messages = Self.messages(program)
            #expect(status == 0)
            #expect(messages.first == ["type": "ready", "protocol": 1, "concurrent": 8])
            #expect(messages.contains(["type": "pong", "n": 7]))
            #expect(messages.contains(["type": "progress", "id": "a", "fraction": 0.5, "message": "half"]))
            let results = messages.filter { $0["type"] == "result" }
            #expect(results.compactMap { $0["id"]?.string }.sorted() == ["a", "b", "c", "d"])
            let outcomes = Dictionary(results.map { ($0["id"]?.string ?? "", $0["outcome"]?.string ?? "") }) { $1 }
            #expect(outcomes == ["a": "succeeded", "b": "failed", "c": "succeeded", "d": "failed"])
            #expect(results.filter { $0["id"] != "d" }.allSatisfy { $0["attempt"] == 2 })
        }
    }

    @Test func `cancel stops one request and leaves the others running`() throws {
        withTempTree { tree in
            var input = Self.line(["type": "hello", "protocol": 1])
            for id in ["a", "b"] { input += Self.run(line: Self.request("wait", id: id)) }
            input += Self.line(["type": "cancel", "id": "a"]) + Self.line(["type": "cancel", "id": "nobody"])
            let rest = Self.line(["type": "cancel", "id": "b"])
            TestFile.write(tree.path("rest"), rest)
            let program = Self.start(
                tree, "serve", input, then: "while [ ! -e go ]; do sleep 0.02; done; cat rest")
            let isCancelled = Deadline.wait { Self.messages(program).contains { $0["id"] == "a" } }
            #expect(isCancelled)
            let before = Self.messages(program).filter { $0["type"] == "result" }
            #expect(before.map { $0["id"] } == ["a"])
            #expect(before.first?["outcome"] == "retry")
            TestFile.write(tree.path("go"), "")
            let status = program.wait()
            #expect(status == 0)
            #expect(Self.messages(program).last?["id"] == "b")
        }
    }

    @Test func `a ping is answered while requests block all of Swift's threads`() throws {
        withTempTree { tree in
            let rules = tree.path("rules").description
            var input = Self.line(["type": "hello", "protocol": 1])
            for id in 1...8 { input += Self.run(line: Self.request("block", id: "\(id)", rules: rules)) }
            input += Self.line(["type": "ping", "n": 1])
            let program = Self.start(tree, "serve", input)
            let isAlive = Deadline.wait { Self.messages(program).contains(["type": "pong", "n": 1]) }
            #expect(isAlive)
            TestFile.write(tree.path("rules.go"), "")
            let status = program.wait()
            #expect(status == 0)
            #expect(Self.messages(program).filter { $0["type"] == "result" }.count == 8)
        }
    }
}

import JSON
import PluginProtocol
import Testing

/// The request line that a plugin reads, encoded and decoded without Foundation.
struct RequestEncodingTests {
    private static func event(_ path: String) -> PluginEvent {
        PluginEvent(
            event: "modified", path: path, relative: "b \"quoted\"\\\t\u{1}\u{7f}é😀", root: "/a", origin: "live",
            type: "file", size: 1 << 40, mtime: "2026-01-01T00:00:00.5Z", btime: nil, mode: "0644", uid: 0, gid: -1,
            nlink: 2, id: "8:1:5:7", time: "2026-01-01T00:00:01Z")
    }

    private static var full: PluginRequest {
        var event = event("/a/b/c")
        event.pathBase64 = "L2H/"
        event.relativeBase64 = "Yv8="
        event.rootBase64 = "L2E="
        event.from = "/a/old"
        event.fromBase64 = "L2Evb2xk"
        event.btime = "2025-12-31T23:59:59Z"
        event.changed = ["mode", "xattr:user.a"]
        event.replaced = true
        event.sameAs = [PluginPath(bytes: Array("/a/same".utf8)), PluginPath(bytes: [0x2F, 0xFF])]
        event.via = "move"
        event.children = 3
        event.before = PluginMetadata(
            size: -1, mtime: "", mode: "0600", uid: 1, gid: 2, nlink: 3, id: "1:2:3:4",
            xattr: ["user.a": .null, "user.b": ["base64": "/w=="]])
        event.by = PluginWriter(pid: 7, comm: nil, exe: "/bin/sh", uid: nil)
        event.by?.exeBase64 = "L2Jpbi9zaA=="
        event.tail = PluginTail(offset: 5, text: "a\r\nb", base64: nil, reset: true, remaining: 0)
        event.job = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
        event.with = ["own": 1]
        var response = PluginResponse(
            .notReady, message: "later", code: "a.b-c", retryAfter: 2,
            outputs: [PluginPath(bytes: Array("/x".utf8))], values: ["n": 1.5, "a": "b"])
        response.results = [PluginResponse(.skipped), PluginResponse(.retry, retryAfter: 0.25)]
        return PluginRequest(
            id: "01ARZ3NDEKTSV4RRFFQ69G5FAV", attempt: 2, maxAttempts: 5, interrupted: true, dryRun: true,
            deadline: "2099-01-01T00:00:00Z", rule: RuleReference(name: "r", file: "/r.yaml", line: 12),
            with: [
                "whole": 1.0, "small": 0.1, "large": 1e300, "integer": -9, "list": [true, false, .null, [], [:]],
                "text": "a/b\nc", "Ä": "last", "z": ["y": ["x": "w"]], "zero": 0,
                "least": .integer(.min), "most": .integer(.max),
                "escapes": ["\"", "\\\\", "\n\u{1f} \u{0}", "a\"", ""],
            ],
            scratch: "/run/1", previous: PreviousAttempt(attempt: 1, outcome: "retry", message: nil),
            steps: [PluginResponse(.succeeded), response], events: [event, Self.event("/a/d")])
    }

    private static var small: PluginRequest {
        PluginRequest(
            id: "i", attempt: 1, maxAttempts: 1, deadline: "", rule: RuleReference(name: "", file: "", line: 0),
            with: [:], scratch: "", events: [])
    }

    @Test(arguments: [full, small])
    func `a request is encoded as one line and decodes to the same value`(_ request: PluginRequest) throws {
        let line = try request.encodedBytes()
        #expect(line.last == UInt8(ascii: "\n"))
        #expect(line.dropLast().contains(UInt8(ascii: "\n")) == false)
        // A number without a fraction is decoded as an integer.
        var expected = request
        expected.with = request.with.json
        let read = PluginRequest(record: line)
        #expect(read == expected)
    }

    @Test(arguments: [full, small])
    func `members are sorted, and a number without a fraction is an integer`(
        _ request: PluginRequest
    ) throws {
        let line = try request.encodedBytes()
        let value = try #require(JSONValue(record: line))
        #expect(String(decoding: line, as: UTF8.self) == value.line + "\n")
        #expect(value.object?["with"]?.object?["whole"] ?? 1 == 1)
    }

    @Test func `a request without a required member is refused, naming the member`() {
        #expect(throws: JSONError.misfit("attempt")) { try PluginRequest(reading: ["id": "1"]) }
        #expect(throws: JSONError.noObject) { try PluginRequest(reading: [1]) }
    }

    @Test(arguments: [Double.nan, .infinity])
    func `a value that is not a number cannot be encoded`(_ number: Double) {
        var request = Self.small
        request.with = ["list": [.number(number)]]
        #expect(throws: EncodingError.self) { try request.encodedBytes() }
    }
}

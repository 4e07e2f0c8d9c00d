import ActionAPI
import Foundation
import JSON
import OtherActions
import PluginProtocol
import Rules
import System
import Testing
import TestKit

/// Requests that `webhook` sends.
struct WebhookHandlerTests {
    // MARK: Requests

    @Test func `a CloudEvent has all metadata and is the same at each attempt`() throws {
        let server = try WebhookServer()
        let directory = TemporaryDirectory()
        var rule = WebhookRule.make(directory)
        for attempt in 1...2 {
            rule.attempt = attempt
            let outcome = rule.run("a b.txt", ["url": server.url("/hook?status=204")])
            #expect(outcome.result == .succeeded)
            #expect(outcome.message == "http://127.0.0.1:\(server.port) answered 204")
            #expect(outcome.values == ["status": 204])
        }
        let requests = server.requests
        try #require(requests.count == 2)
        #expect(requests[0].body == requests[1].body)
        #expect(requests[0].method == "POST")
        #expect(requests[0].headers["content-type"] == "application/cloudevents+json; charset=utf-8")
        #expect(requests[0].headers["user-agent"] == "Alight")
        #expect(requests[0].headers["expect"] == nil)
        let event = try #require(requests[0].json?.object)
        #expect(event["specversion"] == "1.0")
        #expect(event["id"] == "01JD8Z3T1WQ2V7N0C5M4K9R6XB")
        #expect(event["type"] == "alight.created")
        #expect(event["subject"] == "a b.txt")
        #expect(event["rule"] == "r")
        #expect(event["time"] == "1970-01-01T00:33:20Z")
        #expect(event["datacontenttype"] == "application/json")
        #expect(event["source"]?.string?.hasPrefix("alight://") == true)
        #expect(event["source"]?.string?.hasSuffix("/r") == true)
        let data = try #require(event["data"]?.object)
        #expect(data["path"] == .string("\(directory.path)/in/a b.txt"))
        #expect(data["size"] == 4)
        #expect(data["event"] == "created")
    }

    @Test func `a name that is not UTF-8 is exact in the data`() throws {
        let server = try WebhookServer()
        let directory = TemporaryDirectory()
        let rule = WebhookRule.make(directory)
        let path = tree(directory, [0x66, 0xFF])
        TestFile.write(path, "")
        #expect(rule.handler.run(rule.invocation(path, ["url": server.url("/")])).result == .succeeded)
        let event = try #require(server.requests.first?.json?.object)
        #expect(event["subject"] == "f\u{FFFD}")
        #expect(event["data"]?.object?["relative_base64"] == "Zv8=")
    }

    private func tree(_ directory: TemporaryDirectory, _ name: [UInt8]) -> PathBytes {
        directory.path.appending("in").appending(name)
    }

    @Test func `a custom body is valid JSON for any file name`() throws {
        let server = try WebhookServer()
        let directory = TemporaryDirectory()
        let name = "quote\" \\ \n end"
        let rule = WebhookRule.make(directory, name: name)
        let mapping: JSONValue = [
            "url": server.url("/"), "method": "PUT", "body": ["text": "new: ${name}", "list": ["${size}", 1, true]],
        ]
        #expect(rule.run(name, mapping).result == .succeeded)
        #expect(rule.run(name, ["url": server.url("/"), "body": "${name}!"]).result == .succeeded)
        #expect(rule.run(name, ["url": server.url("/"), "body": ""]).result == .succeeded)
        let requests = server.requests
        try #require(requests.count == 3)
        #expect(requests[0].method == "PUT")
        #expect(requests[0].headers["content-type"] == "application/json")
        #expect(requests[0].json == ["text": .string("new: \(name)"), "list": ["4", 1, true]])
        #expect(requests[1].headers["content-type"] == "text/plain; charset=utf-8")
        #expect(requests[1].body == Array("\(name)!".utf8))
        #expect(requests[2].body == [])
        #expect(requests[2].headers["content-length"] == "0")
    }

    @Test func `a name in the URL cannot lead elsewhere`() throws {
        let server = try WebhookServer()
        let directory = TemporaryDirectory()
        let name = "a?b#c&d=é %\r\n"
        let rule = WebhookRule.make(directory, name: name)
        let url = JSONValue.string("http://127.0.0.1:\(server.port)/x/${relative}?name=${name}")
        #expect(rule.run(name, ["url": url]).result == .succeeded)
        let encoded = "a%3Fb%23c%26d%3D%C3%A9%20%25%0D%0A"
        #expect(server.requests.first?.path == "/x/\(encoded)?name=\(encoded)")
    }

    @Test func `headers are sent, even empty ones, and can change the content type`() throws {
        let server = try WebhookServer()
        let directory = TemporaryDirectory()
        let rule = WebhookRule.make(directory)
        let headers: JSONValue = [
            "Authorization": "Bearer abcdef", "X-Name": "${name}", "X-Number": 5, "X-Empty": "",
            "content-type": "application/json",
        ]
        #expect(rule.run("a b.txt", ["url": server.url("/"), "headers": headers]).result == .succeeded)
        let sent = try #require(server.requests.first?.headers)
        #expect(sent["authorization"] == "Bearer abcdef")
        #expect(sent["x-name"] == "a b.txt")
        #expect(sent["x-number"] == "5")
        #expect(sent["x-empty"] == "")
        #expect(sent["content-type"] == "application/json")
    }

    @Test(arguments: ["a\r\nX-Evil: 1", "a\nb", "a\rb", "tab is fine\tbut \u{7F} not"])
    func `a line break in a name adds no header`(name: String) throws {
        let server = try WebhookServer()
        let directory = TemporaryDirectory()
        let rule = WebhookRule.make(directory, name: name)
        let outcome = rule.run(name, ["url": server.url("/"), "headers": ["X-Name": "${name}"]])
        #expect(outcome.result == .failed)
        #expect(outcome.code == "bad-request")
        #expect(outcome.message.contains("the header 'X-Name' would contain a line break"))
        #expect(server.requests.isEmpty)
    }

    @Test(arguments: ["X Name", "X:Name", "", "Ünicode", "Content-Length", "transfer-encoding"])
    func `an invalid header is refused`(name: String) throws {
        let directory = TemporaryDirectory()
        let rule = WebhookRule.make(directory)
        let headers = JSONValue.object([name: "1"])
        let outcome = rule.run("a b.txt", ["url": "http://127.0.0.1:9/", "headers": headers])
        #expect(outcome.result == .failed)
        #expect(outcome.code == "bad-request")
    }

    @Test func `a secret that is too short to be hidden in messages is refused`() throws {
        let schema = try #require(WebhookHandler().summary.parameters)
        func problems(_ secret: String) -> [String] {
            let parameters = ParameterTemplate(["url": "http://127.0.0.1:9/", "secret": .string(secret)])
            return ParameterCheck.problems(in: parameters, schema: schema).map(\.message)
        }
        #expect(problems("key") == ["'secret' has 3 characters, but at least 4 are needed"])
        #expect(problems("keys") == [])
    }

    // MARK: Signatures

    @Test func `signatures equal those of openssl`() throws {
        let server = try WebhookServer()
        let directory = TemporaryDirectory()
        let rule = WebhookRule.make(directory)
        #expect(
            rule.run("a b.txt", ["url": server.url("/"), "secret": "sign-key", "signature": "github"]).result
                == .succeeded)
        #expect(rule.run("a b.txt", ["url": server.url("/"), "secret": "sign-key"]).result == .succeeded)
        // The example of the Standard Webhooks specification with the secret MfKQ….
        let whsec: JSONValue = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        #expect(rule.run("a b.txt", ["url": server.url("/"), "secret": whsec]).result == .succeeded)
        let requests = server.requests
        try #require(requests.count == 3)
        let github = try hmac(requests[0].body, options: ["-hmac", "sign-key"], in: directory)
        #expect(requests[0].headers["x-hub-signature-256"] == "sha256=\(Self.hex(github))")
        #expect(requests[0].headers["webhook-id"] == nil)
        let keys = [
            "hexkey:7369676e2d6b6579",
            "hexkey:\(Self.hex(Array(Data(base64Encoded: "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw") ?? Data())))",
        ]
        for (request, key) in zip(requests.dropFirst(), keys) {
            #expect(request.headers["webhook-id"] == "01JD8Z3T1WQ2V7N0C5M4K9R6XB")
            let time = try #require(request.headers["webhook-timestamp"])
            #expect(abs((Double(time) ?? 0) - Date().timeIntervalSince1970) < 600)
            let signed = Array("01JD8Z3T1WQ2V7N0C5M4K9R6XB.\(time).".utf8) + request.body
            let digest = try hmac(signed, options: ["-mac", "HMAC", "-macopt", key], in: directory)
            #expect(request.headers["webhook-signature"] == "v1,\(Data(digest).base64EncodedString())")
        }
    }

    private func hmac(_ bytes: [UInt8], options: [String], in directory: TemporaryDirectory) throws -> [UInt8] {
        TestFile.write(directory.path.appending("signed"), bytes)
        let arguments = ["dgst", "-sha256", "-binary", "-out", "digest"] + options + ["signed"]
        let made = call("/usr/bin/openssl", arguments, in: directory.path)
        try #require(made.status == 0, "\(made.error)")
        return try #require(TestFile.read(directory.path.appending("digest")))
    }

    private static func hex(_ bytes: [UInt8]) -> String { bytes.map { String(format: "%02x", $0) }.joined() }
}

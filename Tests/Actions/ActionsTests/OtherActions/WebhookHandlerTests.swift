import ActionAPI
import FileEvents
import Foundation
import Glibc
import JSON
import OtherActions
import PluginProtocol
import Rules
import System
import TestKit
import Testing

/// Requests that `webhook` sends, and the outcomes of the responses.
struct WebhookHandlerTests {
    /// Creates a rule for a file in the given directory.
    private func rule(_ folder: TemporaryDirectory, name: String = "a b.txt") -> ContentRule {
        let rule = ContentRule(folder.path, WebhookHandler())
        TestFile.write(rule.path(name), "text")
        return rule
    }

    // MARK: Requests

    @Test func `a CloudEvent has all metadata and is the same at each attempt`() throws {
        let server = try WebhookServer()
        let folder = try TemporaryDirectory()
        var rule = rule(folder)
        for attempt in 1...2 {
            rule.attempt = attempt
            let outcome = rule.run("a b.txt", ["url": server.url("/hook?status=204")])
            #expect(outcome.ending == .succeeded)
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
        #expect(data["path"] == .string("\(folder.path)/in/a b.txt"))
        #expect(data["size"] == 4)
        #expect(data["event"] == "created")
    }

    @Test func `a name that is not UTF-8 is exact in the data`() throws {
        let server = try WebhookServer()
        let folder = try TemporaryDirectory()
        let rule = rule(folder)
        let path = tree(folder, [0x66, 0xFF])
        TestFile.write(path, "")
        #expect(rule.handler.run(rule.invocation(path, ["url": server.url("/")])).ending == .succeeded)
        let event = try #require(server.requests.first?.json?.object)
        #expect(event["subject"] == "f\u{FFFD}")
        #expect(event["data"]?.object?["relative_base64"] == "Zv8=")
    }

    private func tree(_ folder: TemporaryDirectory, _ name: [UInt8]) -> PathBytes {
        folder.path.appending("in").appending(name)
    }

    @Test func `a custom body is valid JSON for any file name`() throws {
        let server = try WebhookServer()
        let folder = try TemporaryDirectory()
        let name = "quote\" \\ \n end"
        let rule = rule(folder, name: name)
        let mapping: JSONValue = [
            "url": server.url("/"), "method": "PUT", "body": ["text": "new: ${name}", "list": ["${size}", 1, true]],
        ]
        #expect(rule.run(name, mapping).ending == .succeeded)
        #expect(rule.run(name, ["url": server.url("/"), "body": "${name}!"]).ending == .succeeded)
        #expect(rule.run(name, ["url": server.url("/"), "body": ""]).ending == .succeeded)
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
        let folder = try TemporaryDirectory()
        let name = "a?b#c&d=é %\r\n"
        let rule = rule(folder, name: name)
        let url = JSONValue.string("http://127.0.0.1:\(server.port)/x/${relative}?name=${name}")
        #expect(rule.run(name, ["url": url]).ending == .succeeded)
        let encoded = "a%3Fb%23c%26d%3D%C3%A9%20%25%0D%0A"
        #expect(server.requests.first?.path == "/x/\(encoded)?name=\(encoded)")
    }

    @Test func `headers are sent, even empty ones, and can change the content type`() throws {
        let server = try WebhookServer()
        let folder = try TemporaryDirectory()
        let rule = rule(folder)
        let headers: JSONValue = [
            "Authorization": "Bearer abcdef", "X-Name": "${name}", "X-Number": 5, "X-Empty": "",
            "content-type": "application/json",
        ]
        #expect(rule.run("a b.txt", ["url": server.url("/"), "headers": headers]).ending == .succeeded)
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
        let folder = try TemporaryDirectory()
        let rule = rule(folder, name: name)
        let outcome = rule.run(name, ["url": server.url("/"), "headers": ["X-Name": "${name}"]])
        #expect(outcome.ending == .failed)
        #expect(outcome.code == "bad-request")
        #expect(outcome.message.contains("the header 'X-Name' would contain a line break"))
        #expect(server.requests.isEmpty)
    }

    @Test(arguments: ["X Name", "X:Name", "", "Ünicode", "Content-Length", "transfer-encoding"])
    func `an invalid header is refused`(name: String) throws {
        let folder = try TemporaryDirectory()
        let rule = rule(folder)
        let headers = JSONValue.object([name: "1"])
        let outcome = rule.run("a b.txt", ["url": "http://127.0.0.1:9/", "headers": headers])
        #expect(outcome.ending == .failed)
        #expect(outcome.code == "bad-request")
    }

    // MARK: Signatures

    @Test func `signatures equal those of openssl`() throws {
        let server = try WebhookServer()
        let folder = try TemporaryDirectory()
        let rule = rule(folder)
        #expect(
            rule.run("a b.txt", ["url": server.url("/"), "secret": "key", "signature": "github"]).ending == .succeeded)
        #expect(rule.run("a b.txt", ["url": server.url("/"), "secret": "key"]).ending == .succeeded)
        // The example of the Standard Webhooks specification with the secret MfKQ….
        let whsec: JSONValue = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        #expect(rule.run("a b.txt", ["url": server.url("/"), "secret": whsec]).ending == .succeeded)
        let requests = server.requests
        try #require(requests.count == 3)
        let github = try hmac(requests[0].body, options: ["-hmac", "key"], in: folder)
        #expect(requests[0].headers["x-hub-signature-256"] == "sha256=\(Self.hex(github))")
        #expect(requests[0].headers["webhook-id"] == nil)
        let keys = [
            "hexkey:6b6579",
            "hexkey:\(Self.hex(Array(Data(base64Encoded: "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw") ?? Data())))",
        ]
        for (request, key) in zip(requests.dropFirst(), keys) {
            #expect(request.headers["webhook-id"] == "01JD8Z3T1WQ2V7N0C5M4K9R6XB")
            let time = try #require(request.headers["webhook-timestamp"])
            #expect(abs((Double(time) ?? 0) - Date().timeIntervalSince1970) < 600)
            let signed = Array("01JD8Z3T1WQ2V7N0C5M4K9R6XB.\(time).".utf8) + request.body
            let digest = try hmac(signed, options: ["-mac", "HMAC", "-macopt", key], in: folder)
            #expect(request.headers["webhook-signature"] == "v1,\(Data(digest).base64EncodedString())")
        }
    }

    private func hmac(_ bytes: [UInt8], options: [String], in folder: TemporaryDirectory) throws -> [UInt8] {
        TestFile.write(folder.path.appending("signed"), bytes)
        let arguments = ["dgst", "-sha256", "-binary", "-out", "digest"] + options + ["signed"]
        let made = call("/usr/bin/openssl", arguments, in: folder.path)
        try #require(made.status == 0, "\(made.error)")
        return try #require(TestFile.read(folder.path.appending("digest")))
    }

    private static func hex(_ bytes: [UInt8]) -> String { bytes.map { String(format: "%02x", $0) }.joined() }

    // MARK: Responses

    static let statuses: [(Int, Outcome.Ending)] = [
        (200, .succeeded), (201, .succeeded), (202, .succeeded), (204, .succeeded), (299, .succeeded),
        (300, .failed), (303, .failed), (304, .failed), (400, .failed), (401, .failed), (403, .failed), (404, .failed),
        (405, .failed), (409, .failed), (410, .failed), (413, .failed), (422, .failed), (408, .retry), (425, .retry),
        (429, .retry), (500, .retry), (501, .retry), (502, .retry), (503, .retry), (504, .retry), (599, .retry),
    ]

    @Test func `each status has its outcome`() throws {
        let server = try WebhookServer()
        let folder = try TemporaryDirectory()
        let rule = rule(folder)
        for (status, ending) in Self.statuses {
            let outcome = rule.run("a b.txt", ["url": server.url("/?status=\(status)")])
            #expect(outcome.ending == ending, "\(status): \(outcome.message)")
            #expect(outcome.values["status"] == .integer(Int64(status)))
            #expect(outcome.code == (ending == .succeeded ? nil : "http-\(status)"))
            #expect(outcome.retryAfter == nil)
        }
    }

    @Test func `Retry-After is respected, in seconds or as a date, up to a day`() throws {
        let server = try WebhookServer()
        let folder = try TemporaryDirectory()
        let rule = rule(folder)
        let seconds = rule.run("a b.txt", ["url": server.url("/?status=503&after=7")])
        #expect(seconds.retryAfter == .seconds(7))
        let date = try #require(rule.run("a b.txt", ["url": server.url("/?status=429&date=3600")]).retryAfter)
        #expect(date > .seconds(3000) && date <= .seconds(3600))
        #expect(rule.run("a b.txt", ["url": server.url("/?status=503&after=999999")]).retryAfter == .seconds(86_400))
        #expect(rule.run("a b.txt", ["url": server.url("/?status=503&after=-5")]).retryAfter == nil)
        #expect(rule.run("a b.txt", ["url": server.url("/?status=503&after=x")]).retryAfter == nil)
        #expect(rule.run("a b.txt", ["url": server.url("/?status=400&after=7")]).retryAfter == nil)
    }

    @Test func `the first 200 bytes of a response are reported on one line`() throws {
        let server = try WebhookServer()
        let folder = try TemporaryDirectory()
        let rule = rule(folder)
        // Encoded in base64, because content of the URL is not reported.
        func content(_ text: String) -> String {
            Data(text.utf8).base64EncodedString().addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        }
        let short = rule.run("a b.txt", ["url": server.url("/?status=400&content=\(content("no\n\u{1B}[1m such"))")])
        #expect(short.message == "http://127.0.0.1:\(server.port) answered 400: no \u{FFFD}[1m such")
        let long = content(String(repeating: "é", count: 300))
        let cut = rule.run("a b.txt", ["url": server.url("/?status=400&content=\(long)")])
        #expect(cut.message.hasSuffix("answered 400: \(String(repeating: "é", count: 100))…"))
    }

    @Test func `a key in the URL is not reported, even if the server returns the path`() throws {
        let server = try WebhookServer()
        let rule = rule(try TemporaryDirectory())
        let outcome = rule.run("a b.txt", ["url": server.url("/express/key%2012345/a?status=404&token=secret77")])
        #expect(outcome.message == "http://127.0.0.1:\(server.port) answered 404: Cannot POST ***")
        let part = rule.run("a b.txt", ["url": server.url("/express/key%2012345?status=404"), "method": "PUT"])
        #expect(!part.message.contains("12345"))
    }

    @Test func `a response without an end is not waited for`() throws {
        let server = try WebhookServer()
        let folder = try TemporaryDirectory()
        let rule = rule(folder)
        #expect(rule.run("a b.txt", ["url": server.url("/endless")]).ending == .succeeded)
        let outcome = rule.run("a b.txt", ["url": server.url("/endless?status=500")])
        #expect(outcome.ending == .retry)
        #expect(outcome.message.utf8.count < 400)
    }

    @Test func `headers without an end are not read`() throws {
        let server = try WebhookServer()
        let folder = try TemporaryDirectory()
        let outcome = rule(folder).run("a b.txt", ["url": server.url("/headers")])
        #expect(outcome.ending == .retry)
        #expect(outcome.message.contains("the headers of the answer have more than 64 KiB"), "\(outcome.message)")
    }

    @Test func `secrets of the request are not reported, even if the server returns them`() throws {
        let server = try WebhookServer()
        let folder = try TemporaryDirectory()
        let rule = rule(folder)
        let with: JSONValue = [
            "url": server.url("/echo?status=400"), "secret": "sign-secret",
            "headers": ["Authorization": "Bearer token-secret", "X-Back": "sign-secret"],
        ]
        let outcome = rule.run("a b.txt", with)
        #expect(outcome.ending == .failed)
        #expect(outcome.message.contains("***"))
        #expect(!"\(outcome)".contains("token-secret"))
        #expect(!"\(outcome)".contains("sign-secret"))
        #expect(rule.log.all.isEmpty)
    }

    // MARK: Network errors

    @Test func `network errors are retried`() throws {
        let server = try WebhookServer()
        let folder = try TemporaryDirectory()
        let rule = rule(folder)
        let dropped = rule.run("a b.txt", ["url": server.url("/drop")])
        #expect(dropped.ending == .retry)
        #expect(dropped.code == "network")
        let nobody = rule.run("a b.txt", ["url": "http://127.0.0.1:1/secret/path"])
        #expect(nobody.ending == .retry)
        #expect(nobody.message.hasPrefix("http://127.0.0.1:1: "))
        #expect(!nobody.message.contains("secret"))
        let unknown = rule.run("a b.txt", ["url": "http://nothing.invalid/"])
        #expect(unknown.ending == .retry)
        #expect(unknown.message.hasPrefix("http://nothing.invalid: "))
    }

    @Test func `a slow server is abandoned at the timeout and at a stop`() throws {
        let server = try WebhookServer()
        let folder = try TemporaryDirectory()
        var rule = rule(folder)
        rule.timeout = .milliseconds(200)
        let late = rule.run("a b.txt", ["url": server.url("/slow")])
        #expect(late.code == "timed-out")
        rule.timeout = .seconds(1000)
        let slow = rule
        let stop = rule.stop
        let url = server.url("/slow")
        let outcome = Locked<Outcome?>(nil)
        onThreads(2) { thread in
            if thread == 0 {
                let ended = slow.run("a b.txt", ["url": url])
                outcome.change { $0 = ended }
            } else {
                // The request is waiting in the server by now, or will be soon.
                Deadline.pause(.milliseconds(100))
                stop.raise()
            }
        }
        #expect(outcome.value?.isInterrupted == true)
    }

    // MARK: Redirects

    @Test(arguments: [301, 302, 307, 308])
    func `a redirect on the same host gets the same request`(status: Int) throws {
        let server = try WebhookServer()
        let folder = try TemporaryDirectory()
        let rule = rule(folder)
        let with: JSONValue = [
            "url": server.url("/?status=\(status)&to=/there?status=202"), "secret": "key", "signature": "github",
            "headers": ["Authorization": "Bearer abc"],
        ]
        let outcome = rule.run("a b.txt", with)
        #expect(outcome.values["status"] == 202)
        let requests = server.requests
        try #require(requests.count == 2)
        #expect(requests[1].method == "POST")
        #expect(requests[1].path == "/there?status=202")
        #expect(requests[1].body == requests[0].body)
        #expect(requests[1].headers == requests[0].headers)
    }

    @Test func `nothing is sent to another host or another port`() throws {
        let server = try WebhookServer()
        let other = try WebhookServer()
        let folder = try TemporaryDirectory()
        let rule = rule(folder)
        for target in [
            "http://127.0.0.1:\(other.port)/", "http://localhost:\(server.port)/", "http://127.0.0.2/",
            "https://127.0.0.1:\(server.port)/", "file:///etc/passwd", "//[::1]/",
        ] {
            let encoded = target.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
            let with: JSONValue = ["url": server.url("/?status=307&to=\(encoded)"), "secret": "key"]
            let outcome = rule.run("a b.txt", with)
            #expect(outcome.ending == .failed, "\(target)")
            #expect(outcome.code == "redirect", "\(target): \(outcome.message)")
            #expect(outcome.message.contains("which is not followed"))
        }
        #expect(other.requests.isEmpty)
        #expect(server.requests.count == 6)
    }

    @Test func `an endless chain of redirects is abandoned`() throws {
        let server = try WebhookServer()
        let folder = try TemporaryDirectory()
        let outcome = rule(folder).run("a b.txt", ["url": server.url("/circle")])
        #expect(outcome.ending == .failed)
        #expect(outcome.message.hasSuffix("redirects more than 5 times"))
        #expect(server.requests.count == 6)
    }

    // MARK: TLS

    @Test func `over TLS the certificate must be trusted`() throws {
        let server = try WebhookServer(isSecure: true)
        let folder = try TemporaryDirectory()
        let rule = rule(folder)
        let unknown = rule.run("a b.txt", ["url": server.url("/")])
        #expect(unknown.ending == .failed)
        #expect(unknown.code == "tls")
        #expect(unknown.message.contains("is not trusted"))
        #expect(unknown.message.contains("'ca_file'"))
        #expect(server.requests.isEmpty)
        let authority = JSONValue.string("\(server.folder.path)/ca.pem")
        let known = rule.run("a b.txt", ["url": server.url("/"), "ca_file": authority])
        #expect(known.ending == .succeeded, "\(known.message)")
        // The certificate is valid for the address, not for this name.
        let other = rule.run(
            "a b.txt", ["url": .string("https://localhost:\(server.port)/"), "ca_file": authority])
        #expect(other.code == "tls", "\(other.message)")
        let missing = rule.run("a b.txt", ["url": server.url("/"), "ca_file": "missing.pem"])
        #expect(missing.ending == .failed)
        #expect(missing.code == "bad-request")
        let downgraded = rule.run(
            "a b.txt",
            ["url": server.url("/?status=307&to=http%3A%2F%2F127.0.0.1%3A\(server.port)%2F"), "ca_file": authority])
        #expect(downgraded.code == "redirect")
    }

    @Test(.enabled(if: geteuid() == 0, "only root refuses"))
    func `as root, certificate authorities that others can change are not trusted`() throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write("ca.pem", "", mode: 0o646)
        let outcome = rule(folder).run("a b.txt", ["url": "https://127.0.0.1:1/", "ca_file": .string("\(file)")])
        #expect(outcome.ending == .failed)
        #expect(outcome.message == "'ca_file': '\(file)' can be changed by others than root (mode 0646)")
    }
}

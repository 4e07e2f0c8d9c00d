import Foundation
import JSON
import PluginProtocol
import Rules
import Testing

/// The outcomes of the responses to `webhook`.
struct WebhookResponseTests {
    static let statuses: [(Int, Outcome.Result)] = [
        (200, .succeeded), (201, .succeeded), (202, .succeeded), (204, .succeeded), (299, .succeeded),
        (300, .failed), (303, .failed), (304, .failed), (400, .failed), (401, .failed), (403, .failed), (404, .failed),
        (405, .failed), (409, .failed), (410, .failed), (413, .failed), (422, .failed), (408, .retry), (425, .retry),
        (429, .retry), (500, .retry), (501, .retry), (502, .retry), (503, .retry), (504, .retry), (599, .retry),
    ]

    @Test func `each status has its outcome`() throws {
        let server = try WebhookServer()
        let directory = TemporaryDirectory()
        let rule = WebhookRule.make(directory)
        for (status, result) in Self.statuses {
            let outcome = rule.run("a b.txt", ["url": server.url("/?status=\(status)")])
            #expect(outcome.result == result, "\(status): \(outcome.message)")
            #expect(outcome.values["status"] == .integer(Int64(status)))
            #expect(outcome.code == (result == .succeeded ? nil : "http-\(status)"))
            #expect(outcome.retryAfter == nil)
        }
    }

    @Test func `Retry-After is respected, in seconds or as a date, up to a day`() throws {
        let server = try WebhookServer()
        let directory = TemporaryDirectory()
        let rule = WebhookRule.make(directory)
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
        let directory = TemporaryDirectory()
        let rule = WebhookRule.make(directory)
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
        let rule = WebhookRule.make(TemporaryDirectory())
        let outcome = rule.run("a b.txt", ["url": server.url("/express/key%2012345/a?status=404&token=secret77")])
        #expect(outcome.message == "http://127.0.0.1:\(server.port) answered 404: Cannot POST ***")
        let part = rule.run("a b.txt", ["url": server.url("/express/key%2012345?status=404"), "method": "PUT"])
        #expect(!part.message.contains("12345"))
    }

    @Test func `a response without an end is not waited for`() throws {
        let server = try WebhookServer()
        let directory = TemporaryDirectory()
        let rule = WebhookRule.make(directory)
        #expect(rule.run("a b.txt", ["url": server.url("/endless")]).result == .succeeded)
        let outcome = rule.run("a b.txt", ["url": server.url("/endless?status=500")])
        #expect(outcome.result == .retry)
        #expect(outcome.message.utf8.count < 400)
    }

    @Test func `headers without an end are not read`() throws {
        let server = try WebhookServer()
        let directory = TemporaryDirectory()
        let outcome = WebhookRule.make(directory).run("a b.txt", ["url": server.url("/headers")])
        #expect(outcome.result == .retry)
        #expect(outcome.message.contains("the headers of the answer have more than 64 KiB"), "\(outcome.message)")
    }

    @Test func `secrets of the request are not reported, even if the server returns them`() throws {
        let server = try WebhookServer()
        let directory = TemporaryDirectory()
        let rule = WebhookRule.make(directory)
        let with: JSONValue = [
            "url": server.url("/echo?status=400"), "secret": "sign-secret",
            "headers": ["Authorization": "Bearer token-secret", "X-Back": "sign-secret"],
        ]
        let outcome = rule.run("a b.txt", with)
        #expect(outcome.result == .failed)
        #expect(outcome.message.contains("***"))
        #expect(!"\(outcome)".contains("token-secret"))
        #expect(!"\(outcome)".contains("sign-secret"))
        #expect(rule.log.all.isEmpty)
    }
}

import ControlAPI
import Synchronization
import Testing

@testable import Dashboard

/// Responses to requests for pages, and to forms sent without JavaScript.
struct PageRoutesTests {
    private let operations = StubOperations()
    private var pages: PageRoutes { PageRoutes(operations: operations) }
    private var requests: [String] { operations.requests.withLock { $0 } }

    private static func text(_ response: APIResponse) -> String { String(decoding: response.body, as: UTF8.self) }

    private static func request(_ method: String, _ target: String, body: String = "") throws -> APIRequest {
        var request = try #require(APIRequest(transport: .network, method: method, target: Array(target.utf8)))
        request.body = Array(body.utf8)
        return request
    }

    @Test func `a page is HTML, and requests the data that it shows`() throws {
        let response = pages.overview()
        #expect(response.status == 200)
        #expect(response.headers.contains { $0 == ("Content-Type", "text/html; charset=utf-8") })
        #expect(Self.text(response).contains("<h1 class=\"unseen\">Overview</h1>"))
        #expect(requests == ["rules", "history", "jobs [] - 30"])
    }

    @Test func `empty fields of a form are ignored`() throws {
        _ = pages.jobs(try Self.request("GET", "/jobs?state=failed&rule=a%20b&path=&since=&before="))
        #expect(requests.contains("jobs [\"failed\"] a b 100"))
    }

    @Test func `a missing job has a page with an error`() {
        let response = pages.job("NONE")
        #expect(response.status == 404)
        #expect(Self.text(response).contains("<p>there is no job &#39;NONE&#39;</p>"))
    }

    @Test func `a form is applied and redirects to a page`() throws {
        let request = try Self.request("POST", "/pause", body: "rule=a%26b+c")
        let response = pages.act(request, back: "/rules") { rule throws(APIError) in
            _ = try operations.pause(rule)
        }
        #expect(response.status == 303)
        #expect(response.headers.contains { $0 == ("Location", "/rules") })
        #expect(requests == ["pause a&b c"])
    }

    @Test func `an error of a form is shown on a page`() throws {
        let response = pages.act(try Self.request("POST", "/pause"), back: "/") { _ throws(APIError) in
            throw APIError(409, "job '<b>' has not failed", help: "look")
        }
        #expect(response.status == 409)
        #expect(Self.text(response).contains("job &#39;&lt;b&gt;&#39; has not failed"))
    }

    @Test(
        arguments: [
            ("/pause", "http://h:1", "application/x-www-form-urlencoded", nil),
            ("/pause", nil, "application/x-www-form-urlencoded", 415),
            ("/pause", "http://evil.example", "application/x-www-form-urlencoded", 403),
            ("/pause", "null", "application/x-www-form-urlencoded", 403), ("/pause", "http://h:1", "text/plain", 415),
            ("/v1/pause", "http://h:1", "application/x-www-form-urlencoded", 415),
            ("/v1/pause", "http://h:1", "application/json", nil),
        ] as [(String, String?, String, Int?)])
    func `a form is accepted only from a page of this server`(path: String, origin: String?, type: String, status: Int?)
        throws
    {
        var request = try Self.request("POST", path)
        request.host = "h:1"
        request.origin = origin
        request.contentType = type
        var refused: Int?
        do throws(APIError) {
            try Access(hosts: ["h:1"], token: nil).checkWrite(request)
        } catch {
            refused = error.status
        }
        #expect(refused == status)
    }
}

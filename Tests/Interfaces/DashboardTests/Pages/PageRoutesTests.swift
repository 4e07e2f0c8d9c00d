import Dashboard
import Synchronization
import Testing

/// What is answered to those who ask for a page, or press a button of one without script.
struct PageRoutesTests {
    private let operations = StubOperations()
    private var pages: PageRoutes { PageRoutes(operations: operations) }
    private var told: [String] { operations.told.withLock { $0 } }

    private static func text(_ response: APIResponse) -> String { String(decoding: response.body, as: UTF8.self) }

    private static func request(_ method: String, _ target: String, body: String = "") throws -> APIRequest {
        var request = try #require(APIRequest(way: .network, method: method, target: Array(target.utf8)))
        request.body = Array(body.utf8)
        return request
    }

    @Test func `a page is HTML, and asks for what it shows`() throws {
        let response = pages.overview()
        #expect(response.status == 200)
        #expect(response.headers.contains { $0 == ("Content-Type", "text/html; charset=utf-8") })
        #expect(Self.text(response).contains("<h1 class=\"unseen\">Overview</h1>"))
        #expect(told == ["rules", "history", "jobs [] - 30"])
    }

    @Test func `fields that a form leaves empty are not asked for`() throws {
        _ = pages.jobs(try Self.request("GET", "/jobs?state=dead&rule=a%20b&path=&since=&before="))
        #expect(told.contains("jobs [\"dead\"] a b 100"))
    }

    @Test func `a job that isn't there has a page that says so`() {
        let response = pages.job("NONE")
        #expect(response.status == 404)
        #expect(Self.text(response).contains("<p>there is no job &#39;NONE&#39;</p>"))
    }

    @Test func `a form is done and leads back to a page`() throws {
        let request = try Self.request("POST", "/pause", body: "rule=a%26b+c")
        let response = pages.act(request, back: "/rules") { rule throws(APIError) in
            _ = try operations.pause(rule)
        }
        #expect(response.status == 303)
        #expect(response.headers.contains { $0 == ("Location", "/rules") })
        #expect(told == ["pause a&b c"])
    }

    @Test func `what can't be done is said on a page`() throws {
        let response = pages.act(try Self.request("POST", "/pause"), back: "/") { _ throws(APIError) in
            throw APIError(409, "job '<b>' is no dead letter", help: "look")
        }
        #expect(response.status == 409)
        #expect(Self.text(response).contains("job &#39;&lt;b&gt;&#39; is no dead letter"))
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
    func `a form is taken from a page of this server alone`(path: String, origin: String?, type: String, status: Int?)
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

import ControlAPI
import Testing

/// Parsing of request targets.
struct APIRequestTests {
    private static func request(_ target: String) -> APIRequest? {
        APIRequest(transport: .local, method: "GET", target: Array(target.utf8))
    }

    @Test func `a path is bytes, and a query has names and values`() throws {
        let request = try #require(Self.request("/v1/jobs/a%2Fb%FF?rule=a+b&path=/in/%ff&empty&rule=c%26"))
        #expect(request.path == [Array("v1".utf8), Array("jobs".utf8), Array("a/b".utf8) + [0xFF]])
        #expect(request.text("rule") == "c&")
        #expect(request.query["path"] == Array("/in/".utf8) + [0xFF])
        #expect(request.query["empty"] == [])
        #expect(Self.request("/")?.path == [])
    }

    @Test func `an invalid target is rejected`() {
        for target in ["", "v1", "*", "http://a/v1", "/%", "/%2", "/%zz", "/%00", "/a?b=%0", "/a?%=1"] {
            #expect(Self.request(target) == nil, "\(target)")
        }
    }
}

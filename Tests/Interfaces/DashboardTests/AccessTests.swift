import ControlAPI
import Testing

/// Access control of requests over TCP.
struct AccessTests {
    private static let open = Access(hosts: ["127.0.0.1:8088", "localhost:8088"], token: nil)
    private static let token = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ"
    private static let closed = Access(hosts: ["192.0.2.1:8088"], token: token)

    private static func request(
        _ method: String = "GET", _ target: String = "/v1/status", host: String? = "127.0.0.1:8088",
        _ change: (inout APIRequest) -> Void = { _ in }
    ) throws -> APIRequest {
        var request = try #require(APIRequest(transport: .network, method: method, target: Array(target.utf8)))
        request.host = host
        change(&request)
        return request
    }

    private static func status(_ access: Access, _ request: APIRequest) -> Int? {
        do throws(APIError) {
            if let response = try access.check(request) { return response.status }
            try access.checkWrite(request)
            return nil
        } catch {
            return error.status
        }
    }

    @Test func `only requests for the names of the server are served`() throws {
        #expect(Self.status(Self.open, try Self.request()) == nil)
        #expect(Self.status(Self.open, try Self.request(host: "LOCALHOST:8088")) == nil)
        for host in ["evil.example:8088", "127.0.0.1", "127.0.0.1:8089", "", nil] {
            #expect(Self.status(Self.open, try Self.request(host: host)) == 421, "\(host ?? "none")")
        }
    }

    @Test func `a foreign page can neither change nor request anything, even with a form`() throws {
        func write(_ origin: String?, _ type: String?) throws -> Int? {
            Self.status(
                Self.open,
                try Self.request("POST", "/v1/pause") { request in
                    request.origin = origin
                    request.contentType = type
                })
        }
        #expect(try write("http://127.0.0.1:8088", "application/json") == nil)
        #expect(try write(nil, "application/json; charset=utf-8") == nil)
        #expect(try write("http://localhost:8088", "application/json") == 403, "another name is another origin")
        #expect(try write("http://evil.example", "application/json") == 403)
        #expect(try write("null", "application/json") == 403)
        #expect(try write(nil, "text/plain") == 415)
        #expect(try write(nil, nil) == 415)
    }

    @Test func `an address that others can reach requires the token, passed in any supported way`() throws {
        let host = "192.0.2.1:8088"
        #expect(Self.status(Self.closed, try Self.request(host: host)) == 401)
        func shown(_ change: @escaping (inout APIRequest) -> Void) throws -> Int? {
            Self.status(Self.closed, try Self.request(host: host, change))
        }
        #expect(try shown { $0.authorization = "Bearer \(Self.token)" } == nil)
        #expect(try shown { $0.authorization = "bearer  \(Self.token) " } == nil)
        #expect(try shown { $0.authorization = "Basic \(Self.token)" } == 401)
        #expect(try shown { $0.cookie = "a=b; alight_token_8088=\(Self.token)" } == nil)
        #expect(try shown { $0.cookie = "alight_token_8088=\(Self.token)x" } == 401)
        #expect(try shown { $0.cookie = "alight_token_8088=" } == 401)
        // The cookie of another instance on the same host, which a browser sends to this one as well.
        #expect(try shown { $0.cookie = "alight_token_8089=\(Self.token)" } == 401)
        // A token in a query is accepted only in the link, because queries are logged.
        #expect(Self.status(Self.closed, try Self.request("GET", "/v1/status?token=\(Self.token)", host: host)) == 401)
    }

    @Test func `the link sets a cookie that no script can read, and disappears from the address bar`() throws {
        let response = try Self.closed.check(
            try Self.request("GET", "/?token=\(Self.token)", host: "192.0.2.1:8088"))
        let headers = Dictionary(
            (response?.headers ?? []).map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
        #expect(response?.status == 303)
        #expect(headers["Location"] == "/")
        let cookie = headers["Set-Cookie"] ?? ""
        #expect(cookie.hasPrefix("alight_token_8088=\(Self.token);"))
        #expect(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict") && !cookie.contains("Secure"))
        #expect(Self.status(Self.closed, try Self.request("GET", "/?token=x", host: "192.0.2.1:8088")) == 401)
    }

    @Test func `behind a proxy, its name and its own pages are served, with a cookie for TLS only`() throws {
        let access = Access(hosts: ["127.0.0.1:8088"], origins: ["https://alight.example.org"], token: Self.token)
        func ask(
            _ host: String, _ method: String = "GET", _ target: String = "/v1/status", origin: String? = nil
        ) throws -> Int? {
            let request = try Self.request(method, target, host: host) { request in
                request.origin = origin
                request.authorization = "Bearer \(Self.token)"
                request.contentType = "application/json"
            }
            return Self.status(access, request)
        }
        #expect(try ask("alight.example.org") == nil)
        #expect(try ask("Alight.Example.Org") == nil)
        #expect(try ask("alight.example.org:8088") == 421)
        #expect(try ask("other.example.org") == 421)
        let page = "https://alight.example.org"
        #expect(try ask("alight.example.org", "POST", "/v1/pause", origin: page) == nil)
        // A proxy that sends the address itself as the host.
        #expect(try ask("127.0.0.1:8088", "POST", "/v1/pause", origin: page) == nil)
        #expect(try ask("127.0.0.1:8088", "POST", "/v1/pause", origin: "http://127.0.0.1:8088") == nil)
        // Without TLS, an attacker on the network may have written the page.
        #expect(try ask("alight.example.org", "POST", "/v1/pause", origin: "http://alight.example.org") == 403)
        #expect(try ask("alight.example.org", "POST", "/v1/pause", origin: "https://example.org") == 403)

        func cookie(_ host: String) throws -> String {
            let response = try access.check(try Self.request("GET", "/?token=\(Self.token)", host: host))
            return response?.headers.first { $0.name == "Set-Cookie" }?.value ?? ""
        }
        #expect(try cookie("alight.example.org").hasPrefix("alight_token=\(Self.token);"))
        #expect(try cookie("alight.example.org").hasSuffix("; Secure"))
        #expect(try !cookie("127.0.0.1:8088").contains("Secure"))
    }

    @Test func `an instance on all addresses accepts each numeric address, and no foreign name`() throws {
        let address = try #require(ListenAddress("0.0.0.0:8088"))
        let access = Access(hosts: address.hosts, takesNumbers: address.isAny, token: nil)
        for host in ["192.0.2.7:8088", "10.0.0.1:9000", "10.0.0.1", "[2001:db8::1]:8088", "[::1]", "localhost:8088"] {
            #expect(Self.status(access, try Self.request(host: host)) == nil, "\(host)")
        }
        for host in ["evil.example:8088", "10.0.0.1.evil.example", "10.0.0.1:x", "[::1", "::1", "10.1:8088", "[]"] {
            #expect(Self.status(access, try Self.request(host: host)) == 421, "\(host)")
        }
        #expect(Self.status(Self.open, try Self.request(host: "10.0.0.1:8088")) == 421)
        #expect(Self.status(access, try Self.request(host: address.linkText)) == nil)
        #expect(!address.linkText.hasPrefix("0.0.0.0"))
        let six = try #require(ListenAddress("[::]:8088")).linkText
        #expect(six.hasPrefix("[") && six != "[::]:8088" && six.hasSuffix("]:8088"))
        #expect(ListenAddress("127.0.0.1:8088")?.linkText == "127.0.0.1:8088")
    }

    @Test func `on port 80 the host may omit the port, as browsers do`() throws {
        let address = try #require(ListenAddress("127.0.0.1:80"))
        let access = Access(hosts: address.hosts, token: nil)
        for host in ["127.0.0.1", "localhost", "[::1]", "127.0.0.1:80", "localhost:80"] {
            #expect(Self.status(access, try Self.request(host: host)) == nil, "\(host)")
        }
        #expect(Self.status(access, try Self.request(host: "evil.example")) == 421)
        func write(_ origin: String) throws -> Int? {
            let request = try Self.request("POST", "/v1/pause", host: "localhost") { request in
                request.origin = origin
                request.contentType = "application/json"
            }
            return Self.status(access, request)
        }
        #expect(try write("http://localhost") == nil)
        #expect(try write("http://evil.example") == 403)
    }

    @Test func `a token is 32 random bytes as base64url`() {
        let tokens = (0..<64).map { _ in Access.makeToken() }
        let alphabet = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        #expect(Set(tokens).count == 64)
        for token in tokens { #expect(token.count == 43 && token.allSatisfy { alphabet.contains($0) }) }
        #expect(Set(tokens.joined()).count > 60)
    }

    @Test func `addresses are parsed with their ports, and classified by reachability`() {
        #expect(ListenAddress("127.0.0.1:8088")?.isLoopback == true)
        #expect(ListenAddress(":8088")?.text == "127.0.0.1:8088")
        #expect(ListenAddress("[::1]:80")?.text == "[::1]:80")
        #expect(ListenAddress("[::1]:80")?.isLoopback == true)
        #expect(ListenAddress("0.0.0.0:80")?.isLoopback == false)
        // A name may resolve to any address, whatever its prefix, and an address has several spellings.
        #expect(ListenAddress("127.example.org:80")?.isLoopback == false)
        #expect(ListenAddress("127.3.2.1:80")?.isLoopback == true)
        #expect(ListenAddress("[0:0::1]:80")?.isLoopback == true)
        #expect(ListenAddress("[0::0]:80")?.isAny == true)
        #expect(ListenAddress("[::2]:80")?.isAny == false)
        #expect(ListenAddress("[2001:DB8:0::1]:80")?.text == "[2001:db8::1]:80")
        #expect(ListenAddress("127.1:80")?.text == "127.0.0.1:80")
        #expect(ListenAddress("127.1:80")?.isLoopback == true)
        #expect(ListenAddress("LOCALHOST:80")?.isLoopback == true)
        #expect(ListenAddress("0:80")?.isAny == true)
        #expect(ListenAddress("0:80")?.text == "0.0.0.0:80")
        let wrong = [
            "", "8088", "::1:80", "localhost", "localhost:0", "localhost:70000", "localhost:x", "*:80", "[]:80",
            "[localhost]:80",
        ]
        for text in wrong {
            #expect(ListenAddress(text) == nil, "\(text)")
        }
    }
}

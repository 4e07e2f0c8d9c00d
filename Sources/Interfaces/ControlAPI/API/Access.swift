import JSON

/// The access control for TCP, where anyone may connect, including a foreign page in the browser of an authorized
/// user.
///
/// It does no I/O. It does not apply to the Unix socket, for which the kernel identifies the peer.
package struct Access: Sendable {
    /// The names of the server, as they appear in the address bar of a browser.
    package var hosts: Set<String>
    /// Whether every numeric address is a name of the server: no foreign page can make one resolve to this host.
    package var takesNumbers: Bool
    /// The origins of pages that are served through a proxy: `https://alight.example.org`.
    package var origins: Set<String>
    /// The token required for each request; nil if only this host can connect.
    package var token: String?

    package init(hosts: Set<String>, takesNumbers: Bool = false, origins: Set<String> = [], token: String?) {
        self.hosts = Set(hosts.map { $0.lowercased() })
        self.takesNumbers = takesNumbers
        self.origins = Set(origins.map { $0.lowercased() })
        self.token = token
    }

    /// Returns the origins of pages with this host name.
    private static func origins(at host: String) -> Set<String> { ["http://\(host)", "https://\(host)"] }

    /// Returns whether this is a name of the server.
    private func isName(_ host: String) -> Bool {
        if hosts.contains(host) || !origins.isDisjoint(with: Self.origins(at: host)) { return true }
        return takesNumbers && ListenAddress.isNumbers(host)
    }

    /// Returns the name of the cookie for the token.
    ///
    /// Browsers share cookies between all ports of a host, and another instance may use another token.
    static func cookie(at host: String) -> String {
        guard let colon = host.lastIndex(of: ":"), let port = UInt16(host[host.index(after: colon)...]) else {
            return "alight_token"
        }
        return "alight_token_\(port)"
    }

    /// Checks a request.
    ///
    /// - Returns: The response, for the link with the token: it sets the cookie. Nil for all other requests.
    /// - Throws: The reason why the request is refused.
    package func check(_ request: APIRequest) throws(APIError) -> APIResponse? {
        guard request.transport == .network else { return nil }
        // A name that resolves to this host but is not ours indicates DNS rebinding.
        guard let host = request.host?.lowercased(), isName(host) else {
            throw APIError(
                421, "this server is not '\(request.host ?? "")'",
                help: "call it by the address given to --listen, or by that of a proxy given to --external-url")
        }
        guard let token else { return nil }
        if let shown = request.text("token"), request.method == "GET", request.path.isEmpty {
            guard Self.isSame(shown, token) else { throw Self.denied }
            // The redirect removes the token from the address bar, and so from the history and from referrers.
            let secure = origins.contains("https://\(host)") ? "; Secure" : ""
            let cookie = "\(Self.cookie(at: host))=\(token); HttpOnly; SameSite=Strict; Path=/; Max-Age=31536000"
            return APIResponse(
                303, type: "text/plain; charset=utf-8",
                headers: [("Location", "/"), ("Set-Cookie", cookie + secure)], body: [])
        }
        let prefix = "\(Self.cookie(at: host))="
        var shown = Self.words(of: request.cookie).filter { $0.hasPrefix(prefix) }.map { $0.dropFirst(prefix.count) }
        let words = Self.words(of: request.authorization)
        if words.count == 2, words[0].lowercased() == "bearer" { shown.append(words[1]) }
        guard shown.contains(where: { Self.isSame(String($0), token) }) else { throw Self.denied }
        return nil
    }

    /// Checks a request that would change something: it must come from a page of this server, or not from a page.
    ///
    /// - Throws: The reason why the request is refused.
    package func checkWrite(_ request: APIRequest) throws(APIError) {
        guard request.transport == .network, request.method != "GET", request.method != "HEAD" else { return }
        let host = request.host?.lowercased() ?? ""
        if let origin = request.origin?.lowercased() {
            let own = Self.origins(at: host)
            // Of a host with a known origin, no other one is allowed.
            guard origins.contains(origin) || own.contains(origin) && origins.isDisjoint(with: own) else {
                throw APIError(
                    403, "requests from pages of '\(origin)' are not allowed", help: "use the dashboard's own pages")
            }
        }
        // A foreign page can send a form or plain text without a preflight request, but not JSON. The forms of the
        // dashboard's own pages have an origin.
        let isForm = request.origin != nil && request.path.first.map { $0.elementsEqual("v1".utf8) } != true
        let wanted = isForm ? "application/x-www-form-urlencoded" : "application/json"
        let type = Self.words(of: request.contentType).first?.lowercased() ?? ""
        guard type == wanted else {
            throw APIError(415, "unsupported content type '\(type)'", help: "send 'Content-Type: \(wanted)'")
        }
    }

    private static let denied = APIError(
        401, "this requires the token",
        help: "open the link that 'alight run' prints at its start, or send 'Authorization: Bearer …'",
        headers: ["WWW-Authenticate": "Bearer"])

    /// Returns the parts of a header between spaces, tabs and semicolons.
    private static func words(of header: String?) -> [Substring] { header?.split { "; \t".contains($0) } ?? [] }

    /// Compares two strings in time that does not depend on how much of them matches.
    static func isSame(_ one: String, _ other: String) -> Bool {
        let one = Array(one.utf8)
        let other = Array(other.utf8)
        var difference = UInt8(one.count == other.count ? 0 : 1)
        for index in other.indices { difference |= other[index] ^ (one.isEmpty ? 1 : one[index % one.count]) }
        return difference == 0
    }

    /// Returns 32 random bytes as base64url.
    package static func makeToken() -> String {
        let bytes = (0..<32).map { _ in UInt8.random(in: .min ... .max) }
        return Base64.encoded(bytes).replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
}

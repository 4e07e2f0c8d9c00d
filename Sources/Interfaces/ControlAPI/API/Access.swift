/// Who may ask by TCP, where anybody may be: also a page of a foreign site, in the browser of the one who may.
///
/// Pure. Nothing of it concerns the Unix socket, whose other end the kernel names.
package struct Access: Sendable {
    /// Names by which the server is called: what a browser has in its address line.
    package var hosts: Set<String>
    /// Whether any address is a name of it that is written in numbers: no foreign page can have one lead here.
    package var takesNumbers: Bool
    /// Where it is reached through a proxy, as a page there names its origin: `https://alight.example.org`.
    package var origins: Set<String>
    /// What has to be shown with each request; nil when the address can be reached from this machine alone.
    package var token: String?

    package init(hosts: Set<String>, takesNumbers: Bool = false, origins: Set<String> = [], token: String?) {
        self.hosts = Set(hosts.map { $0.lowercased() })
        self.takesNumbers = takesNumbers
        self.origins = Set(origins.map { $0.lowercased() })
        self.token = token
    }

    /// The origins of the pages at that name.
    private func origins(at host: String) -> Set<String> {
        let both: Set<String> = ["http://\(host)", "https://\(host)"]
        let known = both.intersection(origins)
        return known.isEmpty ? both : known
    }

    /// Whether the server is called so.
    private func isName(_ host: String) -> Bool {
        if hosts.contains(host) || !origins.isDisjoint(with: ["http://\(host)", "https://\(host)"]) { return true }
        return takesNumbers && ListenAddress.isNumbers(host)
    }

    /// The cookie that holds the token: to a browser all ports of a host are one, and another Alight may have another.
    static func cookie(at host: String) -> String {
        guard let colon = host.lastIndex(of: ":"), let port = UInt16(host[host.index(after: colon)...]) else {
            return "alight_token"
        }
        return "alight_token_\(port)"
    }

    /// Looks at a request.
    ///
    /// - Returns: What is answered at once instead: the page of the link with the token, whose answer sets the cookie.
    /// - Throws: Why it is not served.
    package func check(_ request: APIRequest) throws(APIError) -> APIResponse? {
        guard request.way == .network else { return nil }
        // A name that leads here and is not ours is an attack by a page that has had its own name lead here.
        guard let host = request.host?.lowercased(), isName(host) else {
            throw APIError(
                421, "this server is not '\(request.host ?? "")'",
                help: "call it by the address given to --listen, or by that of a proxy given to --external-url")
        }
        guard let token else { return nil }
        if let shown = request.text("token"), request.method == "GET", request.path.isEmpty {
            guard Self.isSame(shown, token) else { throw Self.denied }
            // The token goes out of the address line, and with it out of the history and of what is sent to others.
            let secure = origins.contains("https://\(host)") ? "; Secure" : ""
            let cookie = "\(Self.cookie(at: host))=\(token); HttpOnly; SameSite=Strict; Path=/; Max-Age=31536000"
            return APIResponse(
                303, type: "text/plain; charset=utf-8",
                headers: [("Location", "/"), ("Set-Cookie", cookie + secure)], body: [])
        }
        let bearer = request.authorization.flatMap { text -> String? in
            let words = text.split(separator: " ", maxSplits: 1)
            guard words.count == 2, words[0].lowercased() == "bearer" else { return nil }
            return words[1].trimmed
        }
        let crumbs = (request.cookie ?? "").split(separator: ";").map { $0.trimmed }
        let prefix = "\(Self.cookie(at: host))="
        let shown =
            [bearer].compactMap(\.self)
            + crumbs.filter { $0.hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count)) }
        guard shown.contains(where: { Self.isSame($0, token) }) else { throw Self.denied }
        return nil
    }

    /// Looks at a request that would change something: it has to come from a page of this server, or from no page.
    ///
    /// - Throws: Why it is not served.
    package func checkWrite(_ request: APIRequest) throws(APIError) {
        guard request.way == .network, request.method != "GET", request.method != "HEAD" else { return }
        let host = request.host?.lowercased() ?? ""
        if let origin = request.origin?.lowercased() {
            guard origins(at: host).union(origins).contains(origin) else {
                throw APIError(
                    403, "a page of '\(origin)' may change nothing here", help: "use the dashboard's own pages")
            }
        }
        // A foreign page can send a form or plain text without asking first, but no JSON; the forms of the dashboard's
        // own pages say where they come from.
        let isForm = request.origin != nil && request.path.first.map { $0.elementsEqual("v1".utf8) } != true
        let wanted = isForm ? "application/x-www-form-urlencoded" : "application/json"
        let type = request.contentType?.split(separator: ";").first.map { $0.lowercased() } ?? ""
        guard type.trimmed == wanted else {
            throw APIError(415, "'\(type)' is not the type of a request", help: "send 'Content-Type: \(wanted)'")
        }
    }

    private static let denied = APIError(
        401, "this needs the token",
        help: "open the link that 'alight run' prints at its start, or send 'Authorization: Bearer …'")

    /// Compares without telling by the time that it takes how much is right.
    static func isSame(_ one: String, _ other: String) -> Bool {
        let one = Array(one.utf8)
        let other = Array(other.utf8)
        var difference = UInt8(one.count == other.count ? 0 : 1)
        for index in other.indices { difference |= other[index] ^ (one.isEmpty ? 1 : one[index % one.count]) }
        return difference == 0
    }

    /// 32 random bytes as base64url.
    package static func makeToken() -> String {
        var bytes = [UInt8](repeating: 0, count: 32)
        var source = SystemRandomNumberGenerator()
        for index in bytes.indices { bytes[index] = source.next() }
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var text: [UInt8] = []
        var bits = 0
        var held = 0
        for byte in bytes {
            bits = bits << 8 | Int(byte)
            held += 8
            while held >= 6 {
                held -= 6
                text.append(alphabet[bits >> held & 63])
            }
            bits &= (1 << held) - 1
        }
        if held > 0 { text.append(alphabet[bits << (6 - held) & 63]) }
        return String(decoding: text, as: UTF8.self)
    }
}

extension StringProtocol {
    /// The text without blanks around it.
    fileprivate var trimmed: String {
        var text = Substring(self)
        while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return String(text)
    }
}

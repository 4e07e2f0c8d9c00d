package import JSON

/// A response to a request.
package struct APIResponse: Sendable {
    package var status: Int
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]

    package init(_ status: Int = 200, type: String, headers: [(name: String, value: String)] = [], body: [UInt8]) {
        self.status = status
        self.headers = [(name: "Content-Type", value: type)] + headers
        self.body = body
    }

    package init(_ status: Int = 200, json: JSONValue) {
        self.init(status, type: "application/json", body: json.lineBytes + [UInt8(ascii: "\n")])
    }

    /// The security headers for browsers.
    static let securityHeaders: [(name: String, value: String)] = [
        (
            "Content-Security-Policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
                + "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
        ),
        ("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "DENY"), ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Resource-Policy", "same-origin"), ("Cache-Control", "no-store"),
    ]
}

/// An error response.
package struct APIError: Error, Sendable, Hashable {
    package var status: Int
    package var message: String
    package var help: String
    /// Further headers of the response.
    package var headers: [String: String]

    package init(_ status: Int, _ message: String, help: String, headers: [String: String] = [:]) {
        (self.status, self.message, self.help, self.headers) = (status, message, help, headers)
    }

    package var response: APIResponse {
        var response = APIResponse(
            status, json: .object(["error": .object(["message": .string(message), "help": .string(help)])]))
        response.headers += headers.map { (name: $0, value: $1) }
        return response
    }
}

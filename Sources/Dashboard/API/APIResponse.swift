import Foundation
package import PluginProtocol

/// What is answered to a request.
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
        self.init(status, type: "application/json", body: Array((JSONText.of(json) + "\n").utf8))
    }
}

/// Why a request is not served.
package struct APIError: Error, Sendable, Hashable {
    package var status: Int
    package var message: String
    package var help: String
    /// The methods that the path knows, of one that it doesn't.
    package var allowed: [String] = []
    /// Whether nothing that follows on the connection can be believed to be a request.
    package var endsConnection = false

    package init(_ status: Int, _ message: String, help: String) {
        self.status = status
        self.message = message
        self.help = help
    }

    package var response: APIResponse {
        var response = APIResponse(
            status, json: .object(["error": .object(["message": .string(message), "help": .string(help)])]))
        if !allowed.isEmpty { response.headers.append((name: "Allow", value: allowed.joined(separator: ", "))) }
        if endsConnection { response.headers.append((name: "Connection", value: "close")) }
        if status == 401 { response.headers.append((name: "WWW-Authenticate", value: "Bearer")) }
        return response
    }
}

/// JSON in one line.
package enum JSONText {
    /// The value, members in the order of their names.
    package static func of(_ value: JSONValue) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(value) else {
            preconditionFailure("a value without infinities is always JSON")
        }
        return String(decoding: data, as: UTF8.self)
    }

    /// The value on many lines, members in the order of their names.
    package static func lines(of value: JSONValue, indent: String = "") -> String {
        let inner = indent + "  "
        switch value {
        case .object(let members) where !members.isEmpty:
            let parts = members.sorted { $0.key < $1.key }.map { name, value in
                "\(inner)\(of(.string(name))): \(lines(of: value, indent: inner))"
            }
            return "{\n\(parts.joined(separator: ",\n"))\n\(indent)}"
        case .array(let elements) where !elements.isEmpty:
            let parts = elements.map { inner + lines(of: $0, indent: inner) }
            return "[\n\(parts.joined(separator: ",\n"))\n\(indent)]"
        default: return of(value)
        }
    }
}

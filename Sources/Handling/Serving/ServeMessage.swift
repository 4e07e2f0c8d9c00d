import Foundation
import PluginProtocol

/// A line that a serving plugin writes.
package enum ServeMessage: Sendable, Hashable {
    /// It can take requests: the version of the protocol, and how many at once.
    case ready(protocol: Int?, concurrent: Int?)
    /// How far a request is, 0 to 1, with a line for people.
    case progress(id: String, fraction: Double, message: String?)
    /// The answer to a request; the line is the response.
    case result(id: String, attempt: Int?, line: [UInt8])
    case pong(Int)
    /// An object of a type that this version does not know, or that lacks what its type needs; the start of the type.
    case other(String?)
    /// No JSON object; its first bytes, to be shown.
    case unreadable(String)

    /// Reads a line; nil for an empty one.
    package init?(line: ArraySlice<UInt8>) {
        guard let first = line.firstIndex(where: { $0 != 0x20 && !(0x09...0x0D).contains($0) }) else { return nil }
        guard line[first] == UInt8(ascii: "{"), let members = Members.read(line) else {
            self = .unreadable(ProgramReport.cleaned(line[first...].prefix(40)))
            return
        }
        switch (members.type, members.id) {
        case ("ready", _): self = .ready(protocol: members.protocol, concurrent: members.concurrent)
        case ("pong", _): self = .pong(members.n ?? 0)
        case ("result", let id?): self = .result(id: id, attempt: members.attempt, line: Array(line))
        case ("progress", let id?):
            let message = members.message.map { ProgramReport.cleaned(Array($0.utf8)[...]) }
            self = .progress(id: id, fraction: min(max(members.fraction ?? 0, 0), 1), message: message)
        default: self = .other(members.type.map { ProgramReport.cleaned(Array($0.utf8.prefix(40))[...]) })
        }
    }

    /// The members that matter to the conversation; one of another type counts as absent.
    private struct Members: Decodable {
        var type: String?
        var id: String?
        var attempt: Int?
        var `protocol`: Int?
        var concurrent: Int?
        var n: Int?
        var fraction: Double?
        var message: String?

        enum CodingKeys: String, CodingKey { case type, id, attempt, `protocol`, concurrent, n, fraction, message }

        /// Reads them; nil when the line is no object.
        ///
        /// Something else in the line may be what nobody can read: whose answer it is counts all the same.
        static func read(_ line: ArraySlice<UInt8>) -> Members? {
            if let members = JSONValue(plainJSON: line)?.object { return Members(members) }
            return try? JSONDecoder().decode(Members.self, from: Data(line))
        }

        private init(_ members: [String: JSONValue]) {
            type = members["type"]?.string
            id = members["id"]?.string
            attempt = members["attempt"]?.int
            `protocol` = members["protocol"]?.int
            concurrent = members["concurrent"]?.int
            n = members["n"]?.int
            fraction = members["fraction"]?.double
            message = members["message"]?.string
        }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            type = try? container.decodeIfPresent(String.self, forKey: .type)
            id = try? container.decodeIfPresent(String.self, forKey: .id)
            attempt = try? container.decodeIfPresent(Int.self, forKey: .attempt)
            `protocol` = try? container.decodeIfPresent(Int.self, forKey: .protocol)
            concurrent = try? container.decodeIfPresent(Int.self, forKey: .concurrent)
            n = try? container.decodeIfPresent(Int.self, forKey: .n)
            fraction = try? container.decodeIfPresent(Double.self, forKey: .fraction)
            message = try? container.decodeIfPresent(String.self, forKey: .message)
        }
    }
}

extension JSONValue {
    /// The whole number, when this is one.
    fileprivate var int: Int? {
        guard case .integer(let integer) = self else { return nil }
        return Int(exactly: integer)
    }
}

/// A line that Alight writes to a serving plugin, or what it does to it.
package enum ServeCommand: Sendable, Hashable {
    case hello
    /// The request of that number.
    case run(Int)
    case cancel(id: String)
    case ping(Int)
    /// Nothing more comes: it shall finish, and end.
    case endOfFile
    /// It is asked to end, and killed after the grace.
    case terminate
    /// It is killed.
    case kill

    /// The line; nil for a request, which has its own, and for what is no line.
    package var line: [UInt8]? {
        switch self {
        case .hello:
            let version = ProtocolVersion.current
            return Array(#"{"type":"hello","protocol":\#(version),"capabilities":["cancel","progress"]}"#.utf8 + [0x0A])
        case .cancel(let id):
            let quoted = (try? JSONEncoder().encode(id)).map { String(decoding: $0, as: UTF8.self) } ?? "\"\""
            return Array(#"{"type":"cancel","id":\#(quoted)}"#.utf8 + [0x0A])
        case .ping(let number): return Array(#"{"type":"ping","n":\#(number)}"#.utf8 + [0x0A])
        case .run, .endOfFile, .terminate, .kill: return nil
        }
    }
}

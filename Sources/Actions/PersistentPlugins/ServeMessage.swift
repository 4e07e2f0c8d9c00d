import JSON
import PluginProtocol
import Programs
import System

/// A line that a serving plugin writes.
package enum ServeMessage: Sendable, Hashable {
    /// The plugin accepts requests: the version of the protocol, and how many at once.
    case ready(protocol: Int?, concurrent: Int?)
    /// The progress of a request, 0 to 1, with a message for users.
    case progress(id: String, fraction: Double, message: String?)
    /// The answer to a request; the line is the response.
    case result(id: String, attempt: Int?, line: [UInt8])
    case pong(Int)
    /// An object of an unknown type, or without the members that its type requires; the start of the type.
    case other(String?)
    /// A line that is not a JSON object; its first bytes, for display.
    case unreadable(String)

    /// Reads a line; nil for an empty one.
    package init?(line: ArraySlice<UInt8>) {
        guard let first = line.firstIndex(where: { !$0.isASCIISpace }) else { return nil }
        // A value that cannot be represented makes an answer invalid, but the request that it belongs to must be known
        // anyway.
        guard line[first] == UInt8(ascii: "{"), let members = (try? JSONValue(reading: line, isLenient: true))?.object
        else {
            self = .unreadable(String(cleaning: line[first...].prefix(40)))
            return
        }
        let type = members["type"]?.string
        func number(_ name: String) -> Int? { members[name].flatMap { Int(value: $0) } }
        switch (type, members["id"]?.string) {
        case ("ready", _): self = .ready(protocol: number("protocol"), concurrent: number("concurrent"))
        case ("pong", _): self = .pong(number("n") ?? 0)
        case ("result", let id?): self = .result(id: id, attempt: number("attempt"), line: Array(line))
        case ("progress", let id?):
            let message = members["message"]?.string.map { String(cleaning: $0.utf8) }
            self = .progress(id: id, fraction: min(max(members["fraction"]?.double ?? 0, 0), 1), message: message)
        default: self = .other(type.map { String(cleaning: $0.utf8.prefix(40)) })
        }
    }
}

/// A line that Alight writes to a serving plugin, or an operation on its process.
enum ServeCommand: Sendable, Equatable {
    case hello
    case run(ServeRequest)
    case cancel(ServeRequest, ProgramResult.Termination)
    case ping(Int)
    /// Closes its input, so that it finishes its work and exits.
    case endOfFile
    /// Asks the process to exit, and kills it after the grace period.
    case terminate
    /// Kills the process.
    case kill

    /// The line to write now; empty for a command without one.
    var line: [UInt8] {
        switch self {
        case .hello:
            let version = ProtocolVersion.current
            return Array(#"{"type":"hello","protocol":\#(version),"capabilities":["cancel","progress"]}"#.utf8 + [0x0A])
        case .run(let request):
            return request.line(deadline: DiskProbe.now().advanced(by: request.timeout).description)
        case .cancel(let request, _):
            return Array(#"{"type":"cancel","id":\#(request.id.line)}"#.utf8 + [0x0A])
        case .ping(let number): return Array(#"{"type":"ping","n":\#(number)}"#.utf8 + [0x0A])
        case .endOfFile, .terminate, .kill: return []
        }
    }
}

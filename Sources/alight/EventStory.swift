import FileEvents
import Foundation
import PluginProtocol

/// What the journal keeps of a job's event, as far as it is worth showing.
///
/// Read leniently, as another version may have written it: what is missing is nil.
struct EventStory {
    var origin: String?
    /// When the difference was found.
    var found: Timestamp?
    var root: PathBytes?
    var from: PathBytes?
    var type: String?
    var size: Int64?
    var sizeBefore: Int64?
    var changed: [String] = []
    var isReplaced = false
    var isByMove = false
    /// Who did it: an object, or a word for why that is not known.
    var author: JSONValue?

    /// - Parameter facts: The JSON of the journal.
    init(_ facts: String) {
        guard let members = Self.json(facts)?.object else { return }
        origin = members["origin"]?.string
        found = members["time"].flatMap(Self.time)
        root = members["root"].flatMap(Self.path)
        from = members["from"].flatMap(Self.path)
        type = members["snapshot"]?.object?["type"]?.string
        size = members["snapshot"].flatMap(Self.size)
        sizeBefore = members["before"].flatMap(Self.size)
        changed = members["changed"]?.array?.compactMap(\.string) ?? []
        isReplaced = members["replaced"] == true
        isByMove = members["by_move"] == true
        author = members["by"]
    }

    /// Who did it, for people; nil when nobody wanted to know, or nobody knows.
    var writer: String? {
        guard let members = author?.object, case .integer(let pid) = members["pid"] else { return nil }
        var known = ["process \(pid)"]
        if case .integer(let uid) = members["uid"] { known.append("uid \(uid)") }
        if let path = members["exe"].flatMap(Self.path) { known.append(Display.path(path)) }
        let name = members["comm"].flatMap(Self.path).map { "\(Display.path($0)) " }
        return "\(name ?? "")(\(known.joined(separator: ", ")))"
    }

    /// The JSON in a text; nil when it is none.
    static func json(_ text: String?) -> JSONValue? {
        text.flatMap { JSONValue(record: $0.utf8) }
    }

    private static func path(_ value: JSONValue) -> PathBytes? {
        if let text = value.string { return PathBytes(text) }
        return value.object?["base64"]?.string.flatMap { Data(base64Encoded: $0) }.map { PathBytes($0) }
    }

    private static func size(_ value: JSONValue) -> Int64? {
        guard case .integer(let size) = value.object?["size"] else { return nil }
        return size
    }

    /// Seconds since 1970 and the nanoseconds after them.
    private static func time(_ value: JSONValue) -> Timestamp? {
        guard let parts = value.array, parts.count == 2, case .integer(let seconds) = parts[0],
            case .integer(let rest) = parts[1], let nanoseconds = UInt32(exactly: rest)
        else { return nil }
        return Timestamp(seconds: seconds, nanoseconds: nanoseconds)
    }
}

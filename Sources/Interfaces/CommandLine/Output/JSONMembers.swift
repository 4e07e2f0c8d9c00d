import JSON
import System

extension [String: JSONValue] {
    /// Creates the members of an object: those that are not nil, and each path as a string and, if it is not UTF-8, its
    /// exact bytes.
    init(_ members: KeyValuePairs<String, (any JSONMember)?>) {
        self.init()
        for (name, value) in members {
            if let path = value as? PathBytes { add(name, path) } else if let value { self[name] = value.member }
        }
    }

    /// Adds a path as a string, and its exact bytes if it is not UTF-8.
    mutating func add(_ name: String, _ path: PathBytes) { add(name, bytes: path.bytes) }
}

extension JSONValue {
    /// Returns an object of the members that are not nil, see ``Swift/Dictionary/init(_:)``.
    static func members(_ members: KeyValuePairs<String, (any JSONMember)?>) -> JSONValue {
        .object([String: JSONValue](members))
    }

    /// Returns a string, or null for nil.
    static func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }
}

/// A value that can be given for a member of a JSON object.
protocol JSONMember { var member: JSONValue { get } }

extension JSONMember where Self: BinaryInteger { var member: JSONValue { .integer(Int64(self)) } }

extension Int: JSONMember {}
extension Int32: JSONMember {}
extension Int64: JSONMember {}
extension UInt32: JSONMember {}
extension UInt64: JSONMember {}
extension Bool: JSONMember { var member: JSONValue { .bool(self) } }
extension Double: JSONMember { var member: JSONValue { .number(self) } }
extension String: JSONMember { var member: JSONValue { .string(self) } }
extension PathBytes: JSONMember { var member: JSONValue { JSONValue(bytes: bytes) } }
extension JSONValue: JSONMember { var member: JSONValue { self } }
extension Array: JSONMember where Element: JSONMember { var member: JSONValue { .array(map(\.member)) } }
extension [String: JSONValue]: JSONMember { var member: JSONValue { .object(self) } }

extension Duration {
    /// The duration in milliseconds, rounded to microseconds.
    var milliseconds: Double { (self / .microseconds(1)).rounded() / 1000 }
}

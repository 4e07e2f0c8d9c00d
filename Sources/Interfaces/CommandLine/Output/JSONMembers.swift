import JSON
import System

extension [String: JSONValue] {
    /// Creates the members of an object: those that are not nil, and each path as a string and, if it is not UTF-8, its
    /// exact bytes.
    init(_ members: KeyValuePairs<String, JSONValue?>, paths: KeyValuePairs<String, PathBytes?> = [:]) {
        self.init()
        for (name, value) in members { self[name] = value }
        for (name, path) in paths { if let path { add(name, path) } }
    }

    /// Adds a path as a string, and its exact bytes if it is not UTF-8.
    mutating func add(_ name: String, _ path: PathBytes) { add(name, bytes: path.bytes) }
}

extension JSONValue {
    /// Returns an object of the members that are not nil, and of paths.
    static func members(
        _ members: KeyValuePairs<String, JSONValue?>, paths: KeyValuePairs<String, PathBytes?> = [:]
    ) -> JSONValue { .object([String: JSONValue](members, paths: paths)) }

    /// Returns a string, or null for nil.
    static func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }

    static func count(_ number: some BinaryInteger) -> JSONValue { .integer(Int64(number)) }

    static func strings(_ texts: some Sequence<String>) -> JSONValue { .array(texts.map { .string($0) }) }

    static func milliseconds(_ duration: Duration) -> JSONValue { .number(duration / .milliseconds(1)) }
}

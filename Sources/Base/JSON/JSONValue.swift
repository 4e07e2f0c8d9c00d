/// Any JSON value.
public enum JSONValue: Sendable, Hashable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByFloatLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    case null
    case bool(Bool)
    case integer(Int64)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    /// The JSON Schema name of this value's type.
    public var typeName: String {
        switch self {
        case .null: "null"
        case .bool: "boolean"
        case .integer: "integer"
        case .number: "number"
        case .string: "string"
        case .array: "array"
        case .object: "object"
        }
    }

    /// The members, if this is an object.
    public var object: [String: JSONValue]? { if case .object(let members) = self { members } else { nil } }

    /// The string, if this is one.
    public var string: String? { if case .string(let text) = self { text } else { nil } }

    /// The boolean, if this is one.
    public var bool: Bool? { if case .bool(let isTrue) = self { isTrue } else { nil } }

    /// The elements, if this is an array.
    public var array: [JSONValue]? { if case .array(let elements) = self { elements } else { nil } }

    /// The number, if this is an integer or a number.
    public var double: Double? {
        switch self {
        case .integer(let integer): Double(integer)
        case .number(let number): number
        default: nil
        }
    }

    /// Creates an object with the members that are not nil.
    package init(members: KeyValuePairs<String, (any JSONForm)?>) {
        self = .object(members.reduce(into: [:]) { $0[$1.key] = $1.value?.json })
    }

    /// Returns the value on several indented lines, with members sorted by name.
    package func lines(indent: String = "") -> String {
        let inner = indent + "  "
        switch self {
        case .object(let members) where !members.isEmpty:
            let parts = members.sorted { $0.key < $1.key }.map { name, value in
                "\(inner)\(name.line): \(value.lines(indent: inner))"
            }
            return "{\n\(parts.joined(separator: ",\n"))\n\(indent)}"
        case .array(let elements) where !elements.isEmpty:
            return "[\n\(elements.map { inner + $0.lines(indent: inner) }.joined(separator: ",\n"))\n\(indent)]"
        default: return line
        }
    }

    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int64) { self = .integer(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(floatLiteral value: Double) { self = .number(value) }
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(Dictionary(elements) { _, last in last })
    }
}

// Access to the JSON of others: what is missing reads as an empty value.
extension JSONValue {
    package subscript(name: String) -> JSONValue { object?[name] ?? .null }

    package var text: String { string ?? "" }
    package var elements: [JSONValue] { array ?? [] }
    package var count: Int { double.flatMap { Int(exactly: $0.rounded()) } ?? 0 }
    package var texts: [String] { elements.compactMap(\.string) }
    package var isTrue: Bool { bool ?? false }
}

/// Any JSON value, kept apart from the Swift types that could hold it.
public enum JSONValue: Sendable, Hashable {
    case null
    case bool(Bool)
    case integer(Int64)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    /// The JSON Schema word for the type of this value.
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

    /// The members, when this is an object.
    public var object: [String: JSONValue]? {
        guard case .object(let members) = self else { return nil }
        return members
    }

    /// The text, when this is a string.
    public var string: String? {
        guard case .string(let text) = self else { return nil }
        return text
    }

    /// The boolean, when this is one.
    public var bool: Bool? {
        guard case .bool(let isTrue) = self else { return nil }
        return isTrue
    }

    /// The elements, when this is an array.
    public var array: [JSONValue]? {
        guard case .array(let elements) = self else { return nil }
        return elements
    }

    /// The number, when this is an integer or a number.
    public var double: Double? {
        switch self {
        case .integer(let integer): Double(integer)
        case .number(let number): number
        default: nil
        }
    }
}

extension JSONValue {
    /// The value on many lines, members in the order of their names.
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

    /// Whether a number in it is infinite, or none.
    var holdsNoNumber: Bool {
        switch self {
        case .number(let number): !number.isFinite
        case .array(let elements): elements.contains(where: \.holdsNoNumber)
        case .object(let members): members.values.contains(where: \.holdsNoNumber)
        default: false
        }
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByFloatLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int64) { self = .integer(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(floatLiteral value: Double) { self = .number(value) }
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(Dictionary(elements) { _, last in last })
    }
    public init(nilLiteral: ()) { self = .null }
}

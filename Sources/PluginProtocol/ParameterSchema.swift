/// The part of JSON Schema 2020-12 that describes parameters.
///
/// A schema with any other key is refused, so that nothing a plugin asks for is
/// silently left unchecked.
public final class ParameterSchema: Sendable, Hashable, Codable {
    public let type: String?
    public let properties: [String: ParameterSchema]?
    public let required: [String]?
    public let additionalProperties: Bool?
    public let `enum`: [JSONValue]?
    public let const: JSONValue?
    public let `default`: JSONValue?
    public let minimum: Double?
    public let maximum: Double?
    public let minLength: Int?
    public let maxLength: Int?
    public let pattern: String?
    public let items: ParameterSchema?
    public let minItems: Int?
    public let maxItems: Int?
    public let title: String?
    public let description: String?
    /// The value is a secret: never in logs, journal, explain or dashboard.
    public let writeOnly: Bool?
    /// What the value means to Alight: ``destination`` for a path that the action writes to, ``literal`` for a text that
    /// is written out.
    public let role: String?

    /// The role of a parameter that says where output goes; rules that could start each other are found by it.
    public static let destination = "destination"
    /// The role of a URL, into which placeholders bring their values percent-encoded; for built-in handlers alone.
    package static let url = "url"

    /// The role of a text that holds no placeholder, since no name of a file may decide it.
    public static let literal = "literal"

    private enum CodingKeys: String, CodingKey {
        case type, properties, required, additionalProperties, `enum`, const, `default`, minimum, maximum, minLength
        case maxLength, pattern, items, minItems, maxItems, title, description, writeOnly
        case role = "x-alight"
    }

    /// The keys that a schema may have.
    public static let keys = [
        "type", "properties", "required", "additionalProperties", "enum", "const", "default", "minimum", "maximum",
        "minLength", "maxLength", "pattern", "items", "minItems", "maxItems", "title", "description", "writeOnly",
        "x-alight",
    ]

    public init(
        type: String? = nil, properties: [String: ParameterSchema]? = nil, required: [String]? = nil,
        additionalProperties: Bool? = nil, enum: [JSONValue]? = nil, const: JSONValue? = nil,
        default: JSONValue? = nil, minimum: Double? = nil, maximum: Double? = nil, minLength: Int? = nil,
        maxLength: Int? = nil, pattern: String? = nil, items: ParameterSchema? = nil, minItems: Int? = nil,
        maxItems: Int? = nil, title: String? = nil, description: String? = nil, writeOnly: Bool? = nil,
        role: String? = nil
    ) {
        self.type = type
        self.properties = properties
        self.required = required
        self.additionalProperties = additionalProperties
        self.enum = `enum`
        self.const = const
        self.default = `default`
        self.minimum = minimum
        self.maximum = maximum
        self.minLength = minLength
        self.maxLength = maxLength
        self.pattern = pattern
        self.items = items
        self.minItems = minItems
        self.maxItems = maxItems
        self.title = title
        self.description = description
        self.writeOnly = writeOnly
        self.role = role
    }

    public static func == (left: ParameterSchema, right: ParameterSchema) -> Bool {
        left.type == right.type && left.properties == right.properties && left.required == right.required
            && left.additionalProperties == right.additionalProperties && left.enum == right.enum
            && left.const == right.const && left.default == right.default && left.minimum == right.minimum
            && left.maximum == right.maximum && left.minLength == right.minLength && left.maxLength == right.maxLength
            && left.pattern == right.pattern && left.items == right.items && left.minItems == right.minItems
            && left.maxItems == right.maxItems && left.title == right.title && left.description == right.description
            && left.writeOnly == right.writeOnly
            && left.role == right.role
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(type)
        hasher.combine(properties)
        hasher.combine(description)
    }
}

public import JSON

/// The part of JSON Schema 2020-12 that describes parameters.
///
/// A schema with any other key is rejected, so that no constraint of a plugin is
/// silently ignored.
public final class ParameterSchema: Sendable, Hashable {
    public let type: String?
    public let properties: [String: ParameterSchema]?
    public let required: [String]?
    public let additionalProperties: Bool?
    public let minProperties: Int?
    /// The members that are required when a member is present.
    public let dependentRequired: [String: [String]]?
    /// Schemas of which exactly one must be satisfied.
    public let oneOf: [ParameterSchema]?
    public let `enum`: [JSONValue]?
    public let const: JSONValue?
    public let `default`: JSONValue?
    /// Values that `alight new` writes into a rule; strings in them may contain placeholders.
    public let examples: [JSONValue]?
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
    /// Whether the value is a secret, which never appears in logs, journal, explain or dashboard.
    public let writeOnly: Bool?
    /// The meaning of the value to Alight: ``destination`` or ``shared`` for a path that the action writes to,
    /// ``literal`` for a string without placeholders.
    public let role: String?
    /// For a ``destination``: the extensions that the file can have.
    public let extensions: DestinationExtensions?

    /// The role of a parameter with the path of an output of one file; used to find rules that could trigger each
    /// other, and files that would replace each other's output.
    public static let destination = "destination"
    /// The role of a parameter with the path of an output that many files share, such as a database.
    public static let shared = "shared"
    /// The role of a URL, in which the values of placeholders are percent-encoded; for built-in handlers only.
    package static let url = "url"

    /// The role of the path of a file whose content controls the action, so that as root no other user may be able to
    /// change it; for built-in handlers only.
    package static let trusted = "trusted"

    /// The role of a string that contains no placeholder, so that no file name can affect it.
    public static let literal = "literal"

    /// The keys that a schema may have.
    public static let keys = ParameterSchema().members.map(\.key)

    public init(
        type: String? = nil, properties: [String: ParameterSchema]? = nil, required: [String]? = nil,
        additionalProperties: Bool? = nil, minProperties: Int? = nil, dependentRequired: [String: [String]]? = nil,
        oneOf: [ParameterSchema]? = nil, enum: [JSONValue]? = nil, const: JSONValue? = nil, default: JSONValue? = nil,
        examples: [JSONValue]? = nil, minimum: Double? = nil, maximum: Double? = nil, minLength: Int? = nil,
        maxLength: Int? = nil, pattern: String? = nil, items: ParameterSchema? = nil, minItems: Int? = nil,
        maxItems: Int? = nil, title: String? = nil, description: String? = nil, writeOnly: Bool? = nil,
        role: String? = nil, extensions: DestinationExtensions? = nil
    ) {
        (self.type, self.properties, self.required) = (type, properties, required)
        (self.additionalProperties, self.minProperties) = (additionalProperties, minProperties)
        (self.dependentRequired, self.oneOf, self.enum) = (dependentRequired, oneOf, `enum`)
        (self.const, self.default, self.examples) = (const, `default`, examples)
        (self.minimum, self.maximum, self.minLength, self.maxLength) = (minimum, maximum, minLength, maxLength)
        (self.pattern, self.items, self.minItems, self.maxItems) = (pattern, items, minItems, maxItems)
        (self.title, self.description, self.writeOnly) = (title, description, writeOnly)
        (self.role, self.extensions) = (role, extensions)
    }

    /// Whether the value is a path that the action writes to.
    package var isOutput: Bool { role == Self.destination || role == Self.shared }

    /// Returns the schema with further properties; those that exist are unchanged.
    package func adding(_ further: [String: ParameterSchema]) -> ParameterSchema {
        ParameterSchema(
            type: type, properties: (properties ?? [:]).merging(further) { own, _ in own }, required: required,
            additionalProperties: additionalProperties, minProperties: minProperties,
            dependentRequired: dependentRequired, oneOf: oneOf, enum: `enum`, const: const, default: `default`,
            examples: examples, minimum: minimum, maximum: maximum, minLength: minLength, maxLength: maxLength,
            pattern: pattern, items: items, minItems: minItems, maxItems: maxItems, title: title,
            description: description, writeOnly: writeOnly, role: role, extensions: extensions)
    }

    /// The schema as JSON.
    package var json: JSONValue { JSONValue(members: members) }

    /// All keys, each with its value.
    private var members: KeyValuePairs<String, (any JSONForm)?> {
        [
            "type": type, "properties": properties?.mapValues(\.json), "required": required,
            "additionalProperties": additionalProperties, "minProperties": minProperties,
            "dependentRequired": dependentRequired?.mapValues(\.json), "oneOf": oneOf?.map(\.json), "enum": `enum`,
            "const": const, "default": `default`, "examples": examples, "minimum": minimum, "maximum": maximum,
            "minLength": minLength, "maxLength": maxLength, "pattern": pattern, "items": items?.json,
            "minItems": minItems, "maxItems": maxItems, "title": title, "description": description,
            "writeOnly": writeOnly, "x-alight": role, "x-alight-extensions": extensions?.json,
        ]
    }

    public static func == (left: ParameterSchema, right: ParameterSchema) -> Bool {
        left === right || left.json == right.json
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(json) }
}

/// The extensions that a file at a destination can have, each with its dot.
///
/// If a name ends in none of them, the first one is appended.
public enum DestinationExtensions: Sendable, Hashable {
    case fixed([String])
    /// Selected by the value of another parameter.
    case chosen(by: String, [String: [String]])

    /// Parses a list, or a mapping of one parameter to a list for each of its values.
    public init?(_ value: JSONValue) {
        func list(_ value: JSONValue) -> [String]? {
            let texts = value.array?.compactMap(\.string) ?? []
            let isSound = texts.allSatisfy { $0.utf8.count > 1 && $0.hasPrefix(".") && !$0.contains("/") }
            return isSound && !texts.isEmpty && texts.count == value.array?.count ? texts : nil
        }
        if let fixed = list(value) {
            self = .fixed(fixed)
            return
        }
        guard let (parameter, choices) = value.object?.first, value.object?.count == 1, let choices = choices.object
        else { return nil }
        let lists = choices.compactMapValues(list)
        guard !lists.isEmpty, lists.count == choices.count else { return nil }
        self = .chosen(by: parameter, lists)
    }

    fileprivate var json: JSONValue {
        switch self {
        case .fixed(let list): list.json
        case .chosen(let parameter, let lists): [parameter: .object(lists.mapValues(\.json))]
        }
    }

    /// Returns the extensions for the values of the other parameters; empty if the selecting value is unknown.
    package func list(_ value: (String) -> String?) -> [String] {
        switch self {
        case .fixed(let list): list
        case .chosen(let parameter, let lists): value(parameter).flatMap { lists[$0] } ?? []
        }
    }

    /// Whether the last component of a path has one of the extensions, ignoring case, after at least one other byte.
    package static func has(_ path: some Sequence<UInt8>, _ extensions: [String]) -> Bool {
        let components = Array(path).split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        let name = String(decoding: components.last ?? [], as: UTF8.self).lowercased()
        return extensions.contains { name.utf8.count > $0.utf8.count && name.hasSuffix($0.lowercased()) }
    }
}

import JSON
import PluginProtocol
import Rules

/// The forms of values in rules files, as JSON Schema.
enum SchemaForm {
    // MARK: - Single values

    /// A string as the loader reads it: numbers and words such as `true` are taken literally.
    static func text(minimum: Int = 0, maximum: Int? = nil, pattern: String? = nil) -> JSONValue {
        var members: [String: JSONValue] = ["type": ["string", "number", "boolean"]]
        if minimum > 0 { members["minLength"] = .integer(Int64(minimum)) }
        if let maximum { members["maxLength"] = .integer(Int64(maximum)) }
        if let pattern { members["pattern"] = .string(pattern) }
        return .object(members)
    }

    /// A string with placeholders.
    static var template: JSONValue { text(pattern: templatePattern) }

    static let boolean: JSONValue = ["type": "boolean"]

    static func integer(_ range: ClosedRange<Int>) -> JSONValue {
        ["type": "integer", "minimum": .integer(Int64(range.lowerBound)), "maximum": .integer(Int64(range.upperBound))]
    }

    static func words(_ words: [String]) -> JSONValue { ["enum": .array(words.map(JSONValue.string))] }

    /// A duration such as `1h30m`: each unit once, in descending order.
    static func duration(allowsZero: Bool = false) -> JSONValue {
        if allowsZero {
            return ["anyOf": [["const": 0], ["type": "string", "pattern": .string("^(0|\(durationPattern))$")]]]
        }
        let zero = #"(?!(0+(\.0+)?(d|h|ms|m|s))+$)"#
        return ["type": "string", "pattern": .string("^\(zero)\(durationPattern)$")]
    }

    private static let numberPattern = #"[0-9]{1,18}(\.[0-9]{1,9})?"#
    private static let durationPattern =
        "(?=[0-9])" + ["d", "h", "m", "s", "ms"].map { "(\(numberPattern)\($0))?" }.joined()

    /// A size such as `64 KB`; a plain number is in bytes.
    static func size(atLeast least: Int, atMost most: Int? = nil) -> JSONValue {
        var number: [String: JSONValue] = ["type": "number", "minimum": .integer(Int64(least))]
        if let most { number["maximum"] = .integer(Int64(most)) }
        return ["anyOf": [.object(number), ["type": "string", "pattern": .string("^\(sizePattern)$")]]]
    }

    private static let sizePattern = #"[0-9]+(\.[0-9]+)? *([kKmMgG]?[bB]|[kKmMgG][iI][bB])?"#

    // MARK: - Comparisons

    enum Quantity { case size, age, depth }

    /// A comparison such as `> 1 KB` or `1 KB..5 MB`, or a list of comparisons that must all match.
    static func comparisons(of quantity: Quantity) -> JSONValue {
        let value =
            switch quantity {
            case .size: sizePattern
            case .age: "(0|\(durationPattern))"
            case .depth: "[0-9]{1,4}"
            }
        let sign = quantity == .depth ? "(<=?|>=?|==?|!=)?" : "(<=?|>=?|==?|!=)"
        let blank = #"[ \t]*"#
        let pattern = "^\(blank)(\(sign)\(blank)\(value)|\(value)\(blank)\\.\\.\(blank)\(value))\(blank)$"
        let text: JSONValue = ["type": "string", "pattern": .string(pattern)]
        return oneOrMore(quantity == .depth ? ["anyOf": [integer(0...1_000), text]] : text)
    }

    // MARK: - Lists and mappings

    static func list(of element: JSONValue, isNonEmpty: Bool = false) -> JSONValue {
        var members: [String: JSONValue] = ["type": "array", "items": element]
        if isNonEmpty { members["minItems"] = 1 }
        return .object(members)
    }

    static func oneOrMore(_ element: JSONValue, allowsNone: Bool = false) -> JSONValue {
        ["anyOf": [element, list(of: element, isNonEmpty: !allowsNone)]]
    }

    static func object(
        _ members: [String: JSONValue], required: [String] = [], isNonEmpty: Bool = false, description: String? = nil
    ) -> JSONValue {
        var object: [String: JSONValue] = [
            "type": "object", "properties": .object(members), "additionalProperties": false,
        ]
        if !required.isEmpty { object["required"] = .array(required.map(JSONValue.string)) }
        if isNonEmpty { object["minProperties"] = 1 }
        if let description { object["description"] = .string(description) }
        return .object(object)
    }

    // MARK: - Programs

    /// A program and its arguments; as an argument, `null` is also a word.
    static let command: JSONValue = [
        "type": "array", "minItems": 1,
        "prefixItems": [
            ["type": ["string", "number", "boolean"], "not": ["type": "string", "pattern": #"(^|[^$])\$\{"#]]
        ],
        "items": ["type": ["string", "number", "boolean", "null"], "pattern": .string(templatePattern)],
        "examples": [["cp", "${path}", "/srv/copies/"]],
    ]

    /// A shell line, which contains variables instead of placeholders.
    static let shell: JSONValue = {
        var form = text(pattern: #"[^ \t\n\r]"#).object ?? [:]
        form["not"] = ["type": "string", "pattern": .string("(^|[^$])\\$\\{(\(placeholders)|env:[^}]*)\\}")]
        form["examples"] = ["scp \"$ALIGHT_PATH\" backup:/srv/in/"]
        return .object(form)
    }()

    // MARK: - Placeholders

    /// The words between `${` and `}`, except numbered groups and `env:`.
    private static let placeholders: String = {
        let words = Placeholder.words.filter { !$0.contains(".") && !$0.contains(":") && Int($0) == nil }
        return words.sorted().joined(separator: "|")
            + #"|(mtime|now):[^}]+|match\.[^}]+|steps\.[0-9]+\.outputs\.[0-9]+"#
    }()

    /// A string in which each `${…}` is a placeholder and `$${` is not.
    static let templatePattern = pattern(with: #"\#(placeholders)|[1-9][0-9]?|env:[^}]*"#)
    /// A string in which each `${…}` is `${env:NAME}`, the only placeholder with a value when rules load.
    static let pathPattern = pattern(with: "env:[^}]*")
    /// A string whose placeholders depend only on a file's name.
    static let namePattern = pattern(with: "name|stem|extension")

    private static func pattern(with words: String) -> String { #"^([^$]|\$(?!\{)|\$\$\{|\$\{(\#(words))\})*$"# }

    // MARK: - Parameters of handlers

    /// Returns the schema of a handler's parameter, with placeholders allowed in every string.
    static func parameter(_ schema: ParameterSchema) -> JSONValue {
        var members = schema.json.object ?? [:]
        for key in ["writeOnly", "x-alight", "x-alight-extensions"] { members[key] = nil }
        members["properties"] = schema.properties.map { .object($0.mapValues(parameter)) }
        members["oneOf"] = schema.oneOf.map { .array($0.map(parameter)) }
        members["items"] = schema.items.map(parameter)
        members["minimum"] = schema.minimum.map(number)
        members["maximum"] = schema.maximum.map(number)
        guard schema.type == "string" else { return .object(members) }
        // A string with a placeholder has no value yet that could be checked.
        let free: JSONValue = ["type": "string", "pattern": .string(#"\$\{"#)]
        let annotations = members.filter { ["title", "description", "default", "examples"].contains($0.key) }
        let checks = members.filter { annotations[$0.key] == nil }
        let string: [String: JSONValue] = [
            "anyOf": [.object(checks), free], "type": "string", "allOf": [["pattern": .string(templatePattern)]],
        ]
        return .object(string.merging(annotations) { $1 })
    }

    private static func number(_ value: Double) -> JSONValue {
        Int64(exactly: value).map(JSONValue.integer) ?? .number(value)
    }
}

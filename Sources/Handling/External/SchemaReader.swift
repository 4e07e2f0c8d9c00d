import PluginProtocol
import Rules

/// Reads a JSON Schema of parameters, and refuses what Alight would not check.
struct SchemaReader {
    private static let types = ["object", "array", "string", "integer", "number", "boolean", "null"]

    /// - Parameters:
    ///   - value: The schema.
    ///   - place: Where it stands, as `parameters.properties.size`, for messages.
    /// - Returns: The schema, which Alight checks to the last key.
    /// - Throws: The first thing that is wrong.
    static func read(_ value: JSONValue, at place: String = "parameters") throws(HandlerProblem) -> ParameterSchema {
        guard let members = value.object else { throw misfit(place, "a mapping") }
        for key in members.keys.sorted() where !ParameterSchema.keys.contains(key) {
            throw HandlerProblem(
                message: "'\(place)' uses '\(key)', which Alight can't check",
                help: Spelling.help(for: key, candidates: ParameterSchema.keys, noun: "keys"))
        }
        let fields = SchemaFields(members: members, place: place)
        if let type = try fields.text("type"), !types.contains(type) {
            let help = Spelling.help(for: type, candidates: types, noun: "types")
            throw HandlerProblem(message: "'\(place).type' is '\(type)'", help: help)
        }
        let pattern = try fields.text("pattern")
        if let pattern, (try? Regex(pattern)) == nil {
            throw HandlerProblem(message: "'\(place).pattern' is not a regular expression: \(pattern)", help: nil)
        }
        var properties: [String: ParameterSchema]?
        if let value = members["properties"] {
            guard let inner = value.object else { throw misfit("\(place).properties", "a mapping") }
            var read: [String: ParameterSchema] = [:]
            for (key, schema) in inner.sorted(by: { $0.key < $1.key }) {
                read[key] = try Self.read(schema, at: "\(place).properties.\(key)")
            }
            properties = read
        }
        var items: ParameterSchema?
        if let value = members["items"] { items = try Self.read(value, at: "\(place).items") }
        let schema = ParameterSchema(
            type: try fields.text("type"), properties: properties, required: try fields.texts("required"),
            additionalProperties: try fields.bool("additionalProperties"), enum: try fields.list("enum"),
            const: members["const"], default: members["default"], minimum: try fields.number("minimum"),
            maximum: try fields.number("maximum"), minLength: try fields.count("minLength"),
            maxLength: try fields.count("maxLength"), pattern: pattern, items: items,
            minItems: try fields.count("minItems"), maxItems: try fields.count("maxItems"),
            title: try fields.text("title"), description: try fields.text("description"),
            writeOnly: try fields.bool("writeOnly"))
        if let value = schema.default,
            let problem = ParameterCheck.problems(in: ParameterTemplate(value), schema: schema).first
        {
            throw HandlerProblem(message: "'\(place).default' doesn't fit: \(problem.message)", help: problem.help)
        }
        return schema
    }

    fileprivate static func misfit(_ place: String, _ noun: String) -> HandlerProblem {
        HandlerProblem(message: "'\(place)' must be \(noun)", help: nil)
    }
}

/// Members of an object by type, each optional; one of another type is a problem.
struct SchemaFields {
    let members: [String: JSONValue]
    /// Where the object stands; empty at the top.
    let place: String

    func text(_ key: String) throws(HandlerProblem) -> String? { try field(key, "a string") { $0.string } }

    func bool(_ key: String) throws(HandlerProblem) -> Bool? { try field(key, "true or false") { $0.bool } }

    func number(_ key: String) throws(HandlerProblem) -> Double? { try field(key, "a number") { $0.double } }

    func list(_ key: String) throws(HandlerProblem) -> [JSONValue]? { try field(key, "a list") { $0.array } }

    func texts(_ key: String) throws(HandlerProblem) -> [String]? {
        try field(key, "a list of strings") { value in
            guard let texts = value.array?.compactMap(\.string), texts.count == value.array?.count else { return nil }
            return texts
        }
    }

    func count(_ key: String, atLeast least: Int = 0) throws(HandlerProblem) -> Int? {
        try field(key, "a whole number of at least \(least)") { value in
            guard let number = value.double, let count = Int(exactly: number), count >= least else { return nil }
            return count
        }
    }

    private func field<Value>(
        _ key: String, _ noun: String, _ read: (JSONValue) -> Value?
    ) throws(HandlerProblem) -> Value? {
        guard let value = members[key], value != .null else { return nil }
        guard let field = read(value) else {
            throw HandlerProblem(message: "'\(place.isEmpty ? key : "\(place).\(key)")' must be \(noun)", help: nil)
        }
        return field
    }
}

import JSON
import PluginProtocol
import Rules

/// Reads a JSON Schema of parameters, and rejects what Alight would not check.
enum SchemaReader {
    private static let types = ["object", "array", "string", "integer", "number", "boolean", "null"]

    /// - Parameters:
    ///   - value: The schema.
    ///   - location: The path of the schema for messages, such as `parameters.properties.size`.
    /// - Returns: The schema, of which Alight checks every key.
    /// - Throws: The first problem.
    // Long because it visits each key of a schema once, in the order of their messages.
    static func read(_ value: JSONValue, at location: String = "parameters") throws(Problem) -> ParameterSchema {
        guard let members = value.object else {
            throw Problem("'\(location)' must be a mapping", key: location)
        }
        for key in members.keys.sorted() where !ParameterSchema.keys.contains(key) {
            throw Problem(
                "'\(location)' uses '\(key)', which Alight can't check",
                help: Spelling.help(for: key, candidates: ParameterSchema.keys, noun: "keys", except: members.keys),
                key: "\(location).\(key)")
        }
        let fields = SchemaFields(members: members, location: location)
        if let type = try fields.text("type"), !types.contains(type) {
            let help = Spelling.help(for: type, candidates: types, noun: "types")
            throw fields.problem("type", "is '\(type)'", help: help)
        }
        let pattern = try fields.text("pattern")
        if let pattern, let reason = ParameterCheck.refusal(of: pattern) {
            throw fields.problem("pattern", "is not a regular expression: \(pattern.prefix(80))", help: reason)
        }
        let inner = try fields.mapping("properties")?.sorted { $0.key < $1.key }
        let properties = try inner?.map { key, schema throws(Problem) in
            (key, try read(schema, at: "\(location).properties.\(key)"))
        }
        let oneOf = try fields.list("oneOf", nullable: false)?.enumerated().map { index, item throws(Problem) in
            try read(item, at: "\(location).oneOf[\(index)]")
        }
        var dependentRequired: [String: [String]]?
        if let lists = try fields.mapping("dependentRequired") {
            let lists = SchemaFields(members: lists, location: "\(location).dependentRequired")
            dependentRequired = [:]
            for key in lists.members.keys { dependentRequired?[key] = try lists.texts(key) }
        }
        let items = try members["items"].map { item throws(Problem) in try read(item, at: "\(location).items") }
        let role = try fields.text("x-alight")
        if let role, role != ParameterSchema.destination, role != ParameterSchema.shared {
            throw fields.problem(
                "x-alight", "is '\(role)'",
                help: "write '\(ParameterSchema.destination)' for the path of one file's output, or "
                    + "'\(ParameterSchema.shared)' for that of an output of many files")
        }
        let extensions = members["x-alight-extensions"].flatMap(DestinationExtensions.init)
        if members["x-alight-extensions"] != nil, extensions == nil || role != ParameterSchema.destination {
            throw fields.problem(
                "x-alight-extensions", "can't be used",
                help:
                    "write a list such as [.jpg, .png], or { preset: { small: [.jpg] } }, beside 'x-alight: destination'"
            )
        }
        let schema = ParameterSchema(
            type: try fields.text("type"), properties: properties.map { Dictionary(uniqueKeysWithValues: $0) },
            required: try fields.texts("required"),
            additionalProperties: try fields.bool("additionalProperties"),
            minProperties: try fields.count("minProperties"), dependentRequired: dependentRequired, oneOf: oneOf,
            enum: try fields.list("enum"), const: members["const"], default: members["default"],
            examples: try fields.list("examples"), minimum: try fields.number("minimum"),
            maximum: try fields.number("maximum"), minLength: try fields.count("minLength"),
            maxLength: try fields.count("maxLength"), pattern: pattern, items: items,
            minItems: try fields.count("minItems"), maxItems: try fields.count("maxItems"),
            title: try fields.text("title"), description: try fields.text("description"),
            writeOnly: try fields.bool("writeOnly"), role: role, extensions: extensions)
        let examples = (schema.examples ?? []).enumerated().map { ("examples[\($0)]", ParameterTemplate(example: $1)) }
        for (key, value) in (schema.default.map { [("default", ParameterTemplate($0))] } ?? []) + examples {
            guard let problem = ParameterCheck.problems(in: value, schema: schema).first else { continue }
            throw fields.problem(key, "doesn't fit: \(problem.message)", help: problem.help)
        }
        return schema
    }
}

/// The members of an object by type; each is optional, and a member of another type is a problem.
struct SchemaFields {
    let members: [String: JSONValue]
    /// The path of the object for messages; empty at the top level.
    let location: String

    func text(_ key: String) throws(Problem) -> String? { try field(key, "a string") { $0.string } }

    func bool(_ key: String) throws(Problem) -> Bool? { try field(key, "true or false") { $0.bool } }

    func number(_ key: String) throws(Problem) -> Double? { try field(key, "a number") { $0.double } }

    func list(_ key: String, nullable: Bool = true) throws(Problem) -> [JSONValue]? {
        try field(key, "a list", nullable: nullable) { $0.array }
    }

    /// Returns a mapping, which may not be null.
    func mapping(_ key: String) throws(Problem) -> [String: JSONValue]? {
        try field(key, "a mapping", nullable: false) { $0.object }
    }

    func texts(_ key: String) throws(Problem) -> [String]? {
        try field(key, "a list of strings") { [String](value: $0) }
    }

    func count(_ key: String, atLeast least: Int = 0) throws(Problem) -> Int? {
        try field(key, "a whole number of at least \(least)") { value in
            guard let number = value.double, let count = Int(exactly: number), count >= least else { return nil }
            return count
        }
    }

    private func field<Value>(
        _ key: String, _ noun: String, nullable: Bool = true, _ read: (JSONValue) -> Value?
    ) throws(Problem) -> Value? {
        guard let value = members[key], value != .null || !nullable else { return nil }
        guard let field = read(value) else { throw problem(key, "must be \(noun)") }
        return field
    }

    /// Returns a problem with a member; the text follows its name.
    func problem(_ key: String, _ text: String, help: String? = nil) -> Problem {
        let key = location.isEmpty ? key : "\(location).\(key)"
        return Problem("'\(key)' \(text)", help: help, key: key)
    }
}

package import FileEvents
package import PluginProtocol
package import Rules
package import System

extension HandlerDescription {
    /// Creates the description of a built-in handler that accepts only these parameters, and by default the events of
    /// existing files.
    package init(
        _ name: String, _ parameters: [String: ParameterSchema], required: [String]? = nil, minProperties: Int? = nil,
        examples: [JSONValue]? = nil, events: EventMask? = [.created, .modified, .moved, .attributes],
        types: Set<FileType>? = nil, traits: HandlerTraits = [],
        outputTypes: Set<FileType>? = [.file], removal: InputRemoval? = nil
    ) {
        self.init(
            reference: HandlerReference(name: name),
            parameters: ParameterSchema(
                type: "object", properties: parameters, required: required, additionalProperties: false,
                minProperties: minProperties, examples: examples),
            events: events, types: types, traits: traits, outputTypes: outputTypes,
            removal: removal)
    }
}

extension ParameterSchema {
    /// A string, which is not empty unless that is allowed.
    package static func string(
        _ description: String, example: JSONValue? = nil, default value: JSONValue? = nil, minLength: Int? = 1,
        pattern: String? = nil, role: String? = nil, isSecret: Bool = false
    ) -> ParameterSchema {
        ParameterSchema(
            type: "string", default: value, examples: example.map { [$0] }, minLength: minLength,
            pattern: pattern, description: description, writeOnly: isSecret ? true : nil, role: role)
    }

    /// A path; by default, one that the action writes to.
    package static func path(
        _ description: String, example: JSONValue, pattern: String? = nil, role: String = destination
    ) -> ParameterSchema {
        string(
            "\(description) A relative path is resolved from the directory of the rules file.", example: example,
            pattern: pattern, role: role)
    }

    /// One of several words.
    package static func choice(
        _ words: [String], _ description: String, default word: String? = nil, example: JSONValue? = nil
    ) -> ParameterSchema {
        ParameterSchema(
            type: "string", enum: words.map { .string($0) }, default: word.map { .string($0) },
            examples: example.map { [$0] }, description: description)
    }

    package static func flag(_ description: String, default value: Bool? = nil) -> ParameterSchema {
        ParameterSchema(type: "boolean", default: value.map { .bool($0) }, description: description)
    }
}

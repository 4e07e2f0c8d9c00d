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
        types: Set<FileType>? = nil, neededEvents: EventMask = [], traits: HandlerTraits = []
    ) {
        self.init(
            reference: HandlerReference(name: name),
            parameters: ParameterSchema(
                type: "object", properties: parameters, required: required, additionalProperties: false,
                minProperties: minProperties, examples: examples),
            events: events, types: types, neededEvents: neededEvents, traits: traits)
    }
}

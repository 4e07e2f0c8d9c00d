package import ActionAPI
import FileEvents
import PluginProtocol
package import Rules
import System

/// A handler whose work ends with an outcome, or with an error of an operation on a file.
package protocol FileHandler: Handler {
    /// Does the work of one action.
    func handle(_ invocation: Invocation) throws(FileError) -> Outcome
}

extension FileHandler {
    package func run(_ invocation: Invocation) -> Outcome {
        Outcome.of { () throws(FileError) in try handle(invocation) }
    }
}

extension Invocation {
    /// Whether an earlier attempt may have done part of the work.
    var hasBegunBefore: Bool { job.attempt > 1 || job.isInterrupted }
}

extension HandlerDescription {
    /// Creates the description of a handler for existing files.
    init(
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

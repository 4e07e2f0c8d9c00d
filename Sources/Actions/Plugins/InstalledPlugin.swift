import FileEvents
package import PluginProtocol
import Rules
package import System

/// An executable that implements the plugin protocol, with its description.
package struct InstalledPlugin: Sendable, Hashable {
    package var description: PluginDescription
    /// The directory of the plugin, or the executable itself.
    package var location: PathBytes
    /// The parameters of a rule: those of the description, and the ones that Alight itself evaluates.
    package let parameters: ParameterSchema?
    /// The absolute path of the executable.
    package var executable: PathBytes
    /// The arguments before the verb.
    package var arguments: [[UInt8]]
    /// Warnings about keys in the description that this version does not know and ignores.
    package var notices: [String]

    package init(
        description: PluginDescription, location: PathBytes, executable: PathBytes, arguments: [[UInt8]] = [],
        notices: [String] = []
    ) {
        self.description = description
        parameters = description.parameters.map(PluginDestinations.parameters)
        self.location = location
        self.executable = executable
        self.arguments = arguments
        self.notices = notices
    }

    /// The directory of the plugin; nil for a single-file plugin, which is located among other files that it
    /// need not read.
    package var directory: PathBytes? { location == executable ? nil : location }

    /// `plugin 'resize'`, for messages.
    package var title: String { "plugin '\(description.name)'" }

    /// The description that rules are checked against.
    var summary: HandlerDescription {
        let events = description.events.map { EventMask($0.compactMap(EventMask.init(word:))) }
        let types = description.types.flatMap { words in
            words.contains("any") ? nil : Set(words.compactMap(FileType.init(rawValue:)))
        }
        var summary = HandlerDescription(
            reference: HandlerReference(name: description.name, location: location), parameters: parameters,
            events: events, types: types, traits: description.sharesFile ?? false ? .sharesFile : [])
        summary.timeout = description.timeout.flatMap { try? DurationText.parse($0) }
        return summary
    }
}

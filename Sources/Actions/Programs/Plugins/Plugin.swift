import FileEvents
package import PluginProtocol
import Rules
package import System

/// An executable that speaks the plugin protocol, found and described.
package struct Plugin: Sendable, Hashable {
    package var description: PluginDescription
    /// Its folder, or the executable itself.
    package var location: PathBytes
    /// The absolute executable.
    package var executable: PathBytes
    /// What stands before the verb.
    package var arguments: [[UInt8]]
    /// What the description has and this version does not know; ignored, but worth showing.
    package var remarks: [String]

    package init(
        description: PluginDescription, location: PathBytes, executable: PathBytes, arguments: [[UInt8]] = [],
        remarks: [String] = []
    ) {
        self.description = description
        self.location = location
        self.executable = executable
        self.arguments = arguments
        self.remarks = remarks
    }

    /// `plugin 'resize'`, for messages.
    package var title: String { "plugin '\(description.name)'" }

    /// What rules are checked against.
    var summary: HandlerDescription {
        let events = description.events.map { words in
            words.compactMap(EventMask.init(word:)).reduce(EventMask()) { $0.union($1) }
        }
        let types = description.types.flatMap { words in
            words.contains("any") ? nil : Set(words.compactMap(FileType.init(rawValue:)))
        }
        return HandlerDescription(
            reference: HandlerReference(name: description.name, location: location),
            parameters: description.parameters, events: events, types: types,
            sharesFile: description.sharesFile ?? false)
    }
}

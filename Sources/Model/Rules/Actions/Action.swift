package import FileEvents
package import PluginProtocol
package import System

/// What a rule asks for, one step of it.
package struct Action: Sendable, Hashable {
    package enum Work: Sendable, Hashable {
        /// A built-in handler or a plugin, with its parameters.
        case use(HandlerReference, with: ParameterTemplate)
        /// An executable; each element is one argument, whatever the name of the file holds.
        case exec([Template])
        /// A line for `/bin/sh -c`, without placeholders; the facts come as environment variables.
        case shell(String)
    }

    package var work: Work
    package var place: SourcePlace
    /// The events that its handler takes, with the narrower words of each; nil for all.
    package var events: EventMask?
    /// Whether it only asks whether the file is ready.
    package var isQuestion = false
    /// Whether it only reads the file, and may run beside others that do.
    package var sharesFile = false

    package init(_ work: Work, place: SourcePlace, events: EventMask? = nil) {
        self.work = work
        self.place = place
        self.events = events
    }

    /// The word for logs: the handler's name, or `exec` or `shell`.
    package var name: String {
        switch work {
        case .use(let reference, _): reference.name
        case .exec: "exec"
        case .shell: "shell"
        }
    }
}

/// Names a handler: what rules hold after loading, and what the dispatcher looks up.
package struct HandlerReference: Sendable, Hashable {
    /// The name in `use:`, or in the plugin's description.
    package var name: String
    /// The plugin's folder or executable; nil for a built-in handler.
    package var location: PathBytes?

    package init(name: String, location: PathBytes? = nil) {
        self.name = name
        self.location = location
    }
}

/// What rules are checked against when they load.
package struct HandlerDescription: Sendable {
    package var reference: HandlerReference
    /// The parameters in `with:`; nil when anything goes.
    package var parameters: ParameterSchema?
    /// The events it takes; nil for all.
    package var events: EventMask?
    /// The types of file it takes; nil for all.
    package var types: Set<FileType>?
    /// The events without which it can't do its work.
    package var neededEvents: EventMask
    /// Whether it only reads the file, and may run beside others that do.
    package var sharesFile: Bool

    /// The events it takes, with the narrower words of each; nil for all.
    package var covered: EventMask? {
        events.map { taken in
            var covered = taken
            if taken.contains(.modified) { covered.formUnion(.content) }
            if taken.contains(.attributes) { covered.formUnion(.anyAttribute) }
            return covered
        }
    }

    package init(
        reference: HandlerReference, parameters: ParameterSchema?, events: EventMask? = nil,
        types: Set<FileType>? = nil, neededEvents: EventMask = [], sharesFile: Bool = false
    ) {
        self.reference = reference
        self.parameters = parameters
        self.events = events
        self.types = types
        self.neededEvents = neededEvents
        self.sharesFile = sharesFile
    }
}

/// Why a handler can't be used, as the two halves of a diagnostic.
package struct HandlerProblem: Error, Sendable, Hashable {
    package var message: String
    package var help: String?

    package init(message: String, help: String?) {
        self.message = message
        self.help = help
    }
}

/// Finds what `use:` names.
package protocol HandlerCatalog: Sendable {
    /// The handler of that name, for a rule in a file of that folder.
    ///
    /// - Parameters:
    ///   - name: The word in `use:`; with a slash it is a path relative to `folder`.
    ///   - folder: The absolute folder of the rules file.
    /// - Returns: What rules are checked against, or why there is nothing to be used.
    func find(_ name: String, from folder: PathBytes) -> Result<HandlerDescription, HandlerProblem>

    /// All names that `find` would know, for suggestions.
    func names(from folder: PathBytes) -> [String]
}

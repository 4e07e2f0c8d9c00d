package import FileEvents
package import JSON
package import PluginProtocol
package import System

/// One step of the work that a rule requests.
package struct Action: Sendable, Hashable {
    package enum Work: Sendable, Hashable {
        /// A built-in handler or a plugin, with its parameters.
        case use(HandlerReference, with: ParameterTemplate)
        /// An executable.
        ///
        /// Each element is exactly one argument, for any file name.
        case exec([Template])
        /// A command line for `/bin/sh -c`, without placeholders; values are passed as environment variables.
        case shell(String)
    }

    /// The directories in which programs are searched, and the `PATH` of programs.
    package static let searchPath = "/usr/local/bin:/usr/bin:/bin"

    package var work: Work
    package var location: SourcePosition
    /// The events that its handler accepts, with the narrower words of each; nil for all.
    package var events: EventMask?
    /// Whether it only checks whether the file is ready.
    package var isQuestion = false
    package var traits: HandlerTraits

    package init(_ work: Work, location: SourcePosition, events: EventMask? = nil, traits: HandlerTraits = []) {
        (self.work, self.location, self.events, self.traits) = (work, location, events, traits)
    }

    /// Whether a program outside Alight does the work.
    package var isProgram: Bool {
        switch work {
        case .use(let reference, _): reference.location != nil
        case .exec, .shell: true
        }
    }

    /// The name for logs: the handler's name, or `exec` or `shell`.
    package var name: String {
        switch work {
        case .use(let reference, _): reference.name
        case .exec: "exec"
        case .shell: "shell"
        }
    }

    /// Returns the standard input of the action's program.
    ///
    /// An argument with a placeholder names the file, and a program that receives it need not expect anything else.
    ///
    /// - Parameter ofRule: The standard input of the rule's programs; nil if it depends on the action.
    /// - Returns: The standard input.
    package func input(_ ofRule: StandardInput?) -> StandardInput {
        switch work {
        case _ where isQuestion: .nothing
        case .use: .request
        case .exec: ofRule ?? (placeholders.isEmpty ? .request : .nothing)
        case .shell: ofRule ?? .nothing
        }
    }

    /// The placeholders of the action without duplicates, in the order of their first use.
    package var placeholders: [Placeholder] {
        let templates: [Template] =
            switch work {
            case .use(_, let with): with.templates
            case .exec(let templates): templates
            case .shell: []
            }
        var seen: Set<Placeholder> = []
        return templates.flatMap(\.placeholders).filter { seen.insert($0).inserted }
    }

    /// A digest of the action: 64 bits in hexadecimal digits, the same in each run of the program.
    ///
    /// It is FNV-1a over a string of the values.
    package var digest: String {
        let text =
            switch work {
            case .use(let handler, let parameters):
                "use \(handler.name) \(handler.location.map { "\($0.bytes)" } ?? "") \(parameters.text)"
            case .exec(let arguments): "exec \(arguments)"
            case .shell(let line): "shell \(line)"
            }
        var sum: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in text.utf8 { sum = (sum ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return String(sum, radix: 16)
    }
}

/// The standard input of a program: `stdin`.
package enum StandardInput: String, Sendable, Hashable, CaseIterable {
    case request
    /// `/dev/null`.
    case nothing = "none"
}

/// The properties of a handler that decide which of its actions run at a time, and what a killed one may leave.
package struct HandlerTraits: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// It only reads the file, and may run concurrently with other such actions.
    package static let sharesFile = HandlerTraits(rawValue: 1 << 0)
    /// It takes no longer than some milliseconds for a small file, and gains nothing from concurrency: it needs no slot.
    package static let isBrief = HandlerTraits(rawValue: 1 << 1)
    /// The file is no longer at its path after a success.
    package static let removesInput = HandlerTraits(rawValue: 1 << 2)
    /// It gives the file a temporary name before it removes it, so the file has that name after a kill.
    package static let setsInputAside = HandlerTraits(rawValue: 1 << 3)
}

/// The way in which a handler removes the file from its path.
package struct InputRemoval: Sendable {
    /// The location of the file afterwards.
    package enum Target: Sendable {
        /// None, or one that no rule watches.
        case unwatched
        /// The first destination that the parameters specify.
        case destination
        /// The directory of the file, with the name in a parameter.
        case name(parameter: String)
    }

    /// The verb for messages, such as `moves`.
    package var verb: String
    package var target: Target

    package init(_ verb: String, to target: Target = .unwatched) { (self.verb, self.target) = (verb, target) }
}

/// A reference to a handler, stored in loaded rules and resolved by the dispatcher.
package struct HandlerReference: Sendable, Hashable {
    /// The name in `use:`, or in the plugin's description.
    package var name: String
    /// The plugin's directory or executable; nil for a built-in handler.
    package var location: PathBytes?

    package init(name: String, location: PathBytes? = nil) { (self.name, self.location) = (name, location) }
}

/// The description of a handler, which rules are checked against when they are loaded.
package struct HandlerDescription: Sendable {
    package var reference: HandlerReference
    /// The parameters in `with:`; nil if any are accepted.
    package var parameters: ParameterSchema?
    /// The events that it accepts; nil for all.
    package var events: EventMask?
    /// The file types that it accepts; nil for all.
    package var types: Set<FileType>?
    package var traits: HandlerTraits
    /// The types of the files that it writes to its destinations; nil for the type of its input.
    package var outputTypes: Set<FileType>?
    /// The way in which it removes the file; nil if the file stays, or if that is unknown.
    package var removal: InputRemoval?
    /// The timeout of rules that use it and set none; nil for the default.
    package var timeout: Duration?

    /// The events that it accepts, with the narrower words of each; nil for all.
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
        types: Set<FileType>? = nil, traits: HandlerTraits = [],
        outputTypes: Set<FileType>? = [.file], removal: InputRemoval? = nil
    ) {
        (self.reference, self.parameters, self.events, self.types) = (reference, parameters, events, types)
        (self.outputTypes, self.removal) = (outputTypes, removal)
        self.traits = removal == nil ? traits : traits.union(.removesInput)
    }
}

/// The value of a file, and the positions of its parts.
package struct PositionedValue: Sendable, Hashable {
    package var value: JSONValue
    /// The positions by key, such as `parameters.properties.size` or `examples[0]`; that of the file is under an empty
    /// string.
    package var positions: [String: SourcePosition]

    package init(_ value: JSONValue, positions: [String: SourcePosition] = [:]) {
        (self.value, self.positions) = (value, positions)
    }

    /// Returns the position of a key, or of the nearest one above it that exists; nil if the value is not from a file.
    package func position(of key: String) -> SourcePosition? {
        var key = key[...]
        while positions[String(key)] == nil, !key.isEmpty {
            key = key.lastIndex { ".[".contains($0) }.map { key[..<$0] } ?? ""
        }
        return positions[String(key)]
    }
}

/// A catalog that resolves the names in `use:`.
package protocol HandlerCatalog: Sendable {
    /// Returns the handler with a name, for a rules file in a directory.
    ///
    /// - Parameters:
    ///   - name: The word in `use:`; a name with a slash is a path relative to `directory`.
    ///   - directory: The absolute directory of the rules file.
    /// - Returns: The description for checking rules, or the reason why the handler cannot be used.
    func find(_ name: String, from directory: PathBytes) -> Result<HandlerDescription, Problem>

    /// Returns all names that `find` can resolve, for suggestions.
    func names(from directory: PathBytes) -> [String]
}

extension [Action] {
    /// The names of the actions, joined by `+`.
    package var names: String { map(\.name).joined(separator: "+") }
}

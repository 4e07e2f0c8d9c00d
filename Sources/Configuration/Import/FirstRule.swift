import FileEvents
import JSON
import PluginProtocol
package import Rules
package import System

/// A commented first rule for `alight new`.
package struct FirstRule {
    package enum Work {
        case exec([String])
        case use(String, HandlerDescription)
    }

    package var name: String
    /// The absolute path of the directory.
    package var directory: PathBytes
    /// The value of `~`; nil if there is no home directory.
    package var home: PathBytes?
    package var events: [String]
    package var work: Work

    /// Creates a rule; without events, they are `created` and `modified`, or those that the handler accepts.
    package init(name: String, directory: PathBytes, home: PathBytes?, events: [String]?, work: Work) {
        (self.name, self.directory, self.home, self.work) = (name, directory, home, work)
        self.events = events ?? Self.events(for: work)
    }

    private static func events(for work: Work) -> [String] {
        let defaults: EventMask = [.created, .modified]
        guard case .use(_, let handler) = work else { return EventSpelling.words(of: defaults) }
        let covered = defaults.intersection(handler.covered ?? defaults)
        return EventSpelling.words(of: covered.isEmpty ? handler.events ?? defaults : covered)
    }

    /// Returns a rule name for this directory and the work there.
    ///
    /// - Parameters:
    ///   - directory: The directory.
    ///   - word: The name of the handler or program; nil for none.
    ///   - taken: The names of other rules.
    /// - Returns: A name that no other rule has.
    package static func name(for directory: PathBytes, _ word: String?, excluding taken: Set<String>) -> String {
        func plain(_ bytes: some Sequence<UInt8>) -> String {
            let plain = bytes.filter { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") }
            return String(decoding: plain.prefix(40), as: UTF8.self)
        }
        let words = [plain(directory.lastComponent), word.map { plain(PathBytes($0).lastComponent) } ?? ""]
        let joined = words.filter { !$0.isEmpty }.joined(separator: "-")
        let name = joined.isEmpty ? "first" : joined
        var number = 1
        while taken.contains(number == 1 ? name : "\(name)-\(number)") { number += 1 }
        return number == 1 ? name : "\(name)-\(number)"
    }

    /// The text of the rules file.
    package var text: String {
        """
        # One rule. docs/rules.md describes the keys; check changes with `alight check`.
        rules:
          - name: \(YAMLText.scalar(name))

            # Which files: those in the directory itself. Write /**/* for all below it, or *.pdf for some.
            path: \(YAMLText.scalar(glob))
            # exclude: ["drafts/**"]

            # The events that run the action: created, modified, moved, deleted, attributes.
            events: \(YAMLText.list(events))
        \(types)
            # How long a file must not change before it counts as complete.
            settle: 2s

            # Files that exist when the rule first runs are ignored, except with 'run --once'. To process them too:
            # existing: process

        \(action)
        """ + "\n"
    }

    /// The `types` line for a handler that does not accept files; other rules match files by default.
    private var types: String {
        guard case .use(_, let handler) = work, let types = handler.types, !types.contains(.file) else { return "" }
        return "    types: \(YAMLText.list(types.map(\.rawValue).sorted()))\n"
    }

    private var glob: String { pathBelow("*") { YAMLText.glob($0) } }

    /// Returns a path in the directory, which starts with `~/` in the home directory.
    private func pathBelow(_ path: String, _ text: ([UInt8]) -> String) -> String {
        if let home, let relative = directory.relative(to: home), home != "/" {
            return relative.isEmpty ? "~/\(path)" : "~/\(YAMLText.literal(text(Array(relative))))/\(path)"
        }
        let start = YAMLText.literal(text(directory.bytes))
        return start == "/" ? "/\(path)" : "\(start)/\(path)"
    }

    /// Returns a value with a relative destination in the directory; the file of the rule may be anywhere.
    private func placed(_ value: JSONValue, _ schema: ParameterSchema) -> JSONValue {
        guard schema.role == ParameterSchema.destination, let path = value.string, !path.hasPrefix("/"),
            !path.hasPrefix("~"), !path.hasPrefix("${")
        else { return value }
        return .string(pathBelow(path) { String(decoding: $0, as: UTF8.self) })
    }

    private var action: String {
        switch work {
        case .exec(let words):
            return """
                    # The action: a program and its arguments, without a shell. ${path} is the file, ${name} its name.
                    # It runs in an empty temporary directory, so write absolute paths.
                    action:
                      exec: \(YAMLText.list(words))
                """
        case .use(let name, let description):
            var lines = ["    # The action.", "    action:", "      use: \(YAMLText.scalar(name))"]
            let parameters = parameters(of: description)
            if !parameters.isEmpty {
                let isEmpty = parameters.allSatisfy { $0.hasPrefix("#") }
                lines.append("      \(isEmpty ? "# " : "")with:")
                lines += parameters.map { "        \($0)" }
            }
            return lines.joined(separator: "\n")
        }
    }

    /// Returns the parameters: required ones with an initial value, the others as comments.
    private func parameters(of handler: HandlerDescription) -> [String] {
        let schema = handler.parameters
        let needed = Self.needed(in: schema)
        let properties = (schema?.properties ?? [:]).sorted { left, right in
            let (first, second) = (needed[left.key] != nil, needed[right.key] != nil)
            return first == second ? left.key < right.key : first
        }
        return properties.flatMap { key, property -> [String] in
            let comment = property.description.map { ["# \(YAMLText.comment($0))"] } ?? []
            let sample = (needed[key] ?? Self.sample(of: property)).map { placed($0, property) }
            let value = sample.map { " \(YAMLText.flow($0))" } ?? ""
            let line = "\(YAMLText.scalar(key)):\(value)"
            return comment + [needed[key] != nil ? line : "# \(line)"]
        }
    }

    /// Returns the parameters without which a rule is rejected or does nothing: those of the schema's example, and
    /// the required ones.
    private static func needed(in schema: ParameterSchema?) -> [String: JSONValue?] {
        var needed: [String: JSONValue?] = [:]
        for key in schema?.required ?? [] { needed[key] = .some(schema?.properties?[key].flatMap(sample)) }
        for (key, value) in schema?.examples?.first?.object ?? [:] { needed[key] = value }
        return needed
    }

    /// The names of the required parameters for which the handler provides no initial value.
    package var unfilled: [String] {
        guard case .use(_, let handler) = work else { return [] }
        return Self.needed(in: handler.parameters).filter { $0.value == nil }.keys.sorted()
    }

    /// Returns a value that the schema allows; nil if the schema provides none and none can be guessed.
    private static func sample(of schema: ParameterSchema) -> JSONValue? {
        if let value = schema.const ?? schema.examples?.first ?? schema.default ?? schema.enum?.first { return value }
        let guess: JSONValue?
        switch schema.type {
        case "integer": guess = .integer(Int64((schema.minimum ?? min(1, schema.maximum ?? 1)).rounded(.up)))
        case "number": guess = .number(schema.minimum ?? min(1, schema.maximum ?? 1))
        case "boolean": guess = true
        case "array":
            let count = max(1, schema.minItems ?? 1)
            guess = schema.items.flatMap(sample).map { .array(Array(repeating: $0, count: count)) }
        case "object":
            let members = schema.properties ?? [:]
            guess = .object((schema.required ?? []).reduce(into: [:]) { $0[$1] = members[$1].flatMap(sample) })
        case "string" where schema.isOutput: guess = "done/${name}"
        default: guess = nil
        }
        guard let guess, ParameterCheck.problems(in: ParameterTemplate(example: guess), schema: schema).isEmpty else {
            return nil
        }
        return guess
    }
}

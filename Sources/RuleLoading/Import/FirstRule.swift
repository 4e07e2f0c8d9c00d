package import FileEvents
import PluginProtocol
package import Rules

/// A commented rule to begin with, for `alight new`.
package struct FirstRule {
    package enum Work {
        case exec([String])
        case use(String, HandlerDescription)
    }

    package var name: String
    /// Absolute.
    package var folder: PathBytes
    /// What `~` stands for; nil when there is none.
    package var home: PathBytes?
    package var events: [String]
    package var work: Work

    package init(name: String, folder: PathBytes, home: PathBytes?, events: [String], work: Work) {
        self.name = name
        self.folder = folder
        self.home = home
        self.events = events
        self.work = work
    }

    /// A name for a rule about this folder.
    package static func name(for folder: PathBytes) -> String {
        let word = folder.lastComponent.filter { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") }
        return word.isEmpty ? "first" : String(decoding: word.prefix(40), as: UTF8.self)
    }

    /// The text of the rules file.
    package var text: String {
        """
        # One rule. What each key means is in docs/rules.md; try changes with `alight check`.
        rules:
          - name: \(YAMLText.scalar(name))

            # Which files: those in the folder itself. Write /**/* for all below it, and *.pdf for some.
            path: \(YAMLText.scalar(glob))
            # exclude: ["drafts/**"]

            # What has to happen to one: created, modified, moved, deleted, attributes.
            events: \(YAMLText.list(events))

            # How long it has to be quiet before it counts as complete.
            settle: 2s

            # What is there already when the rule starts for the first time: ignore or process.
            existing: ignore

        \(action)
        """ + "\n"
    }

    private var glob: String {
        if let home, let relative = folder.relative(to: home), home != "/" {
            return relative.isEmpty ? "~/*" : "~/\(YAMLText.literal(YAMLText.glob(Array(relative))))/*"
        }
        let glob = YAMLText.literal(YAMLText.glob(folder.bytes))
        return glob == "/" ? "/*" : glob + "/*"
    }

    private var action: String {
        switch work {
        case .exec(let words):
            return """
                    # What to do: a program and its arguments, without a shell. ${path} is the file, ${name} its name.
                    # It works in an empty folder of its own, so write whole paths.
                    action:
                      exec: \(YAMLText.list(words))
                """
        case .use(let name, let description):
            var lines = ["    # What to do.", "    action:", "      use: \(YAMLText.scalar(name))"]
            let parameters = parameters(of: description.parameters)
            if !parameters.isEmpty {
                let isEmpty = parameters.allSatisfy { $0.hasPrefix("#") }
                lines.append("      \(isEmpty ? "# " : "")with:")
                lines += parameters.map { "        \($0)" }
            }
            return lines.joined(separator: "\n")
        }
    }

    /// The parameters: those that are needed with a value to begin with, the others as comments.
    private func parameters(of schema: ParameterSchema?) -> [String] {
        let required = schema?.required ?? []
        let properties = (schema?.properties ?? [:]).sorted { left, right in
            let (first, second) = (required.contains(left.key), required.contains(right.key))
            return first == second ? left.key < right.key : first
        }
        return properties.flatMap { key, property -> [String] in
            let comment = property.description.map { ["# \(YAMLText.comment($0))"] } ?? []
            let value = Self.example(of: property)
            let line = "\(YAMLText.scalar(key)): \(value)"
            return comment + [required.contains(key) ? line : "# \(line)"]
        }
    }

    private static func example(of schema: ParameterSchema) -> String {
        if let value = schema.const ?? schema.default ?? schema.enum?.first {
            return value.string.map(YAMLText.scalar) ?? value.shown
        }
        switch schema.type {
        case "integer": return String(Int(max(schema.minimum ?? 1, 1)))
        case "number": return String(schema.minimum ?? 1)
        case "boolean": return "true"
        case "array": return schema.items.map { "[\(example(of: $0))]" } ?? "[]"
        case "object": return "{}"
        // Neither a folder nor a name alone would do for every handler.
        default: return YAMLText.scalar("done/${name}")
        }
    }
}

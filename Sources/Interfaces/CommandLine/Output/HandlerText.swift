import JSON
import PluginProtocol
import Plugins
import Rules
import System

/// The description of a plugin or a built-in handler, as text and as JSON.
struct HandlerText {
    private let title: String
    private let facts: [(String, String)]
    private let parameters: ParameterSchema?
    let object: [String: JSONValue]

    init(plugin: InstalledPlugin) {
        let description = plugin.description
        var facts = [("from", Display.path(plugin.location)), ("run by", Display.path(plugin.executable))]
        func add(_ name: String, _ value: String?) {
            if let value, !value.isEmpty { facts.append((name, Display.text(value))) }
        }
        add("modes", (description.modes ?? ["run"]).joined(separator: ", "))
        add("events", description.events?.joined(separator: ", ") ?? "all")
        add("types", description.types?.joined(separator: ", ") ?? "all")
        add("requires", description.requires?.joined(separator: ", "))
        add("timeout", description.timeout)
        add("batch", description.batch.map { "at most \($0) events per request" })
        add("concurrent", description.concurrent.map { "at most \($0) requests at once in serve" })
        add("parallel", description.parallel.map { "at most \($0) processes" })
        if description.idempotent == false { add("idempotent", "no: a second run for a job may do harm") }
        if description.sharesFile == true { add("shares_file", "yes: it runs beside other actions that only read") }
        add("names", description.rawPaths == true ? "any bytes" : "UTF-8 only")
        let version = description.version.isEmpty ? "" : " \(description.version)"
        let summary = description.summary.map { ": \($0)" } ?? ""
        title = Display.text(description.name + version + summary)
        self.facts = facts
        parameters = description.parameters
        object = Self.withoutSecrets(description.json).object ?? [:]
    }

    init(builtIn handler: HandlerDescription) {
        title = "\(handler.reference.name): a built-in handler, see docs/handlers.md"
        let types = handler.types.map { $0.map(\.rawValue).sorted().joined(separator: ", ") }
        facts = [
            ("events", handler.events.map { EventSpelling.words(of: $0).joined(separator: ", ") } ?? "all"),
            ("types", types ?? "all"),
        ]
        parameters = handler.parameters
        var object: [String: JSONValue] = ["name": .string(handler.reference.name), "path": "built-in"]
        object["parameters"] = handler.parameters?.json
        self.object = object
    }

    /// Returns the lines for a terminal of this width.
    func lines(width: Int?) -> [String] {
        let column = facts.map(\.0.count).max() ?? 0
        var lines = [title, ""] + facts.map { "\(TerminalText.padded($0.0, column))  \($0.1)" }
        lines.append("")
        guard let parameters else { return lines + ["It accepts any parameters."] }
        var table = TextTable(["PARAMETER", "TYPE", "DEFAULT", "REQUIRED", "DESCRIPTION"])
        for row in Self.rows(of: parameters, place: "") { table.add(row) }
        guard !table.rows.isEmpty else {
            return lines + [
                parameters.additionalProperties == false ? "It has no parameters." : "It accepts any parameters."
            ]
        }
        return lines + table.lines(width: width)
    }

    /// Returns the schema without the defaults of secret parameters.
    private static func withoutSecrets(_ schema: JSONValue) -> JSONValue {
        guard var members = schema.object else { return schema }
        if members["writeOnly"] == true { members["default"] = nil }
        return .object(members.mapValues(withoutSecrets))
    }

    private static func rows(of schema: ParameterSchema, place: String) -> [[String]] {
        (schema.properties ?? [:]).sorted { $0.key < $1.key }.flatMap { key, property in
            let name = place.isEmpty ? key : "\(place).\(key)"
            let row = [
                Display.text(name), Display.text(type(of: property)),
                property.default.map { property.writeOnly == true ? "(secret)" : Display.text($0.line) } ?? "",
                schema.required?.contains(key) == true ? "yes" : "no",
                Display.text(property.description ?? property.title ?? ""),
            ]
            let inner = property.items.map { rows(of: $0, place: "\(name)[]") } ?? []
            return [row] + rows(of: property, place: name) + inner
        }
    }

    /// Returns the type with its constraints.
    private static func type(of schema: ParameterSchema) -> String {
        var words = [schema.type ?? "any"]
        if let items = schema.items { words[0] = "array of \(items.type ?? "any")" }
        if let choices = schema.enum { words = [choices.map(\.shown).joined(separator: " | ")] }
        if let only = schema.const { words = ["always \(only.shown)"] }
        words += [
            range(schema.minimum.map(shown), schema.maximum.map(shown), ""),
            range(schema.minLength.map(String.init), schema.maxLength.map(String.init), " characters"),
            range(schema.minItems.map(String.init), schema.maxItems.map(String.init), " elements"),
        ].compactMap { $0 }
        if let pattern = schema.pattern { words.append("matching \(pattern)") }
        if schema.writeOnly == true { words.append("secret") }
        if schema.role == ParameterSchema.destination { words.append("path") }
        return words.joined(separator: ", ")
    }

    private static func shown(_ number: Double) -> String { JSONValue.number(number).shown }

    private static func range(_ least: String?, _ most: String?, _ unit: String) -> String? {
        switch (least, most) {
        // A minimum length of 1 only excludes the empty value, which is not worth a mention.
        case ("1", nil) where !unit.isEmpty: nil
        case (let least?, let most?): "\(least) to \(most)\(unit)"
        case (let least?, nil): "at least \(least)\(unit)"
        case (nil, let most?): "at most \(most)\(unit)"
        case (nil, nil): nil
        }
    }
}

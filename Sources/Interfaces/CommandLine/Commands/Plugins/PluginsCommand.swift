import ArgumentParser
import Configuration
import Foundation
import JSON
import PluginProtocol
import Plugins
import Rules
import System

/// `alight plugins`: lists, describes, creates and tests plugins.
struct PluginsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "plugins", "List, describe, create and test plugins.",
        discussion: """
              alight plugins                               list plugins, with errors
              alight plugins describe thumbnail            show its parameters
              alight plugins new resize --language python  create one
              alight plugins test ./plugins/resize         test it against the protocol
            """,
        subcommands: [List.self, Describe.self, NewPluginCommand.self, TestPluginCommand.self],
        defaultSubcommand: List.self)

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            "list", "List the plugins that rules can use, and problems with them.",
            discussion: """
                Plugins are directories and executables in ./plugins (without --rules), in 'plugins' beside the rules \
                (and beside a directory of rules that is named 'rules'), $XDG_CONFIG_HOME/alight/plugins \
                (~/.config/alight/plugins), /etc/alight/plugins, ../lib/alight/plugins relative to the directory of this \
                program, and /usr/lib/alight/plugins. If several have the same name, the first is used, and the others \
                are shadowed. A broken plugin is an error only if a rule uses it.
                """)

        @OptionGroup var location: PluginLocation

        @Flag(help: "Print one JSON object per line.")
        var json = false

        func run() throws {
            let program = try CommandContext(try location.configuration.load().settings)
            let directory = try location.directory(program)
            let listings = location.listings(program, from: directory)
            if json {
                for listing in listings { Output.standard.write(listing.object.line) }
                return
            }
            guard !listings.isEmpty else {
                let locations = location.locations(program, from: directory).map { "    \(Display.path($0))" }
                Output.standard.write((["there are no plugins in"] + locations).joined(separator: "\n"))
                return
            }
            let rows = listings.map { listing in
                let description = listing.plugin?.description
                return [
                    Display.text(listing.name), description.map { Display.text($0.version) } ?? "",
                    description.map { ($0.modes ?? ["run"]).joined(separator: ", ") } ?? "", listing.state,
                    Display.path(listing.location),
                ]
            }
            let lines = TextTable.lines([["NAME", "VERSION", "MODES", "STATE", "FROM"]] + rows)
            Output.standard.write((lines + listings.flatMap(\.notices)).joined(separator: "\n"))
        }
    }

    struct Describe: ParsableCommand {
        static let configuration = CommandConfiguration(
            "describe", "Describe a plugin or a built-in handler: its parameters, events, modes and programs.",
            discussion: PluginLocation.discussion)

        @Argument(
            help: .value("name|path", "The name or path of a plugin, or the name of a handler."),
            completion: OfferedWords.handlers)
        var name: String

        @OptionGroup var location: PluginLocation

        @Flag(help: "Print one JSON object.")
        var json = false

        func run() throws {
            let program = try CommandContext(try location.configuration.load().settings)
            let builtIn = program.registry.builtInHandlers.first { $0.reference.name == name }
            let listing = builtIn == nil ? try location.find(name, program) : nil
            let text = builtIn.map { HandlerText(builtIn: $0) } ?? listing?.plugin.map { HandlerText(plugin: $0) }
            guard let text else {
                for problem in listing?.problems ?? [] { problem.emit() }
                throw Exit(.runtimeError)
            }
            let lines = text.lines(width: TerminalText.width()) + (listing?.notices ?? [])
            let object = text.object.merging(listing?.object ?? [:]) { $1 }
            Output.standard.write(json ? object.line : lines.joined(separator: "\n"))
        }
    }
}

/// The plugins that a command considers: those in ./plugins, and those that rules in a directory would find.
struct PluginLocation: ParsableArguments {
    /// The search order for a name, for the help of commands.
    static let discussion = """
        A name is searched for in ./plugins (without --rules), then where the rules would find it; 'alight plugins \
        list --help' lists the places. A word with a slash is a path.
        """

    @Option(
        help: .value(
            "path", "A rules file, or a directory of them, whose plugins are used.",
            discussion: """
                Default: 'rules' of the configuration, else ./rules, else $XDG_CONFIG_HOME/alight/rules (as root \
                /etc/alight/rules), else '.'.
                """), completion: .file())
    var rules: String?

    @OptionGroup var configuration: ConfigurationOptions

    /// Returns the absolute directory of the rules.
    ///
    /// - Throws: `Exit` when it was named and does not exist; the error has been printed.
    func directory(_ program: CommandContext) throws -> PathBytes {
        let candidates = rules.map { [$0] } ?? program.configuredRules?.map(\.description) ?? program.defaultRules
        for candidate in candidates {
            var isDirectory: ObjCBool = false
            guard FileManager.default.fileExists(atPath: candidate, isDirectory: &isDirectory) else { continue }
            let path = program.path(PathBytes(candidate))
            return isDirectory.boolValue ? path : path.parent
        }
        if let rules {
            throw Exit(.usage, error: "'\(rules)' does not exist", help: "name a rules file, or a directory")
        }
        return program.loading.currentDirectory
    }

    func listings(_ program: CommandContext, from directory: PathBytes) -> [PluginListing] {
        program.discovery.inventory(
            from: directory, first: firstLocations(program),
            builtIn: Set(program.registry.builtInHandlers.map(\.reference.name)))
    }

    /// Returns the directories that are searched for plugins, in order, without duplicates.
    func locations(_ program: CommandContext, from directory: PathBytes) -> [PathBytes] {
        var seen: Set<PathBytes> = []
        return (firstLocations(program) + program.discovery.locations(from: directory)).filter {
            seen.insert($0).inserted
        }
    }

    /// Returns the default directory of `plugins new`, unless rules were named.
    private func firstLocations(_ program: CommandContext) -> [PathBytes] {
        rules == nil ? [program.loading.currentDirectory.appending("plugins")] : []
    }

    /// Returns the plugin with that name, or at that path, which is relative to the current directory.
    ///
    /// - Throws: `Exit` when there is none; the error has been printed.
    func find(_ name: String, _ program: CommandContext) throws -> PluginListing {
        if name.contains("/") || name == "." || name == ".." {
            let path = program.path(PathBytes(name))
            if FileManager.default.fileExists(atPath: path.description) {
                return program.discovery.listing(of: path, called: nil)
            }
            throw Exit(.usage, error: "'\(Display.path(path))' does not exist", help: "name the directory of a plugin")
        }
        let directory = try directory(program)
        let listings = listings(program, from: directory)
        if let listing = listings.first(where: { $0.name == name && $0.shadow == nil }) { return listing }
        let nearest = Spelling.nearest(to: name, in: listings.map(\.name)).map { "write '\($0)'; " } ?? ""
        let locations = locations(program, from: directory).map { "'\($0)'" }.joined(separator: ", ")
        let help = "\(nearest)plugins are searched for in \(locations); or name a path, as ./\(name)"
        throw Exit(.usage, error: "no plugin '\(name)'", help: help)
    }
}

extension PluginListing {
    /// The state of the plugin as one word, for the table.
    var state: String { problems.isEmpty ? (shadow == nil ? "ok" : "shadowed") : "broken" }

    /// The errors, warnings and notes that are printed below the table.
    var notices: [String] {
        var lines = problems.map { problem in
            let title = plugin == nil && !problem.message.contains("'\(name)'") ? "'\(Display.text(name))': " : ""
            return problem.line(title)
        }
        for notice in plugin?.notices ?? [] {
            lines.append("warning: plugin '\(Display.text(name))': \(Display.text(notice))")
        }
        switch shadow {
        case .builtIn:
            lines.append(
                "note: '\(Display.path(location))' is shadowed by the built-in handler '\(Display.text(name))'")
        case .plugin(let path): lines.append("note: '\(Display.path(location))' is shadowed by '\(Display.path(path))'")
        case nil: break
        }
        return lines
    }

    /// The members of the JSON object.
    var object: [String: JSONValue] {
        let description = plugin?.description
        let problems = problems.map { JSONValue.members(["message": $0.message, "help": $0.help]) }
        var object = [String: JSONValue]([
            "name": name, "state": state, "version": description?.version,
            "modes": description.map { $0.modes ?? ["run"] }, "summary": description?.summary,
            "remarks": plugin.flatMap { $0.notices.isEmpty ? nil : $0.notices },
            "problems": problems.isEmpty ? nil : problems, "path": location,
        ])
        switch shadow {
        case .builtIn: object["shadowed_by"] = "built-in"
        case .plugin(let path): object.add("shadowed_by", path)
        case nil: break
        }
        return object
    }
}

/// The description of a plugin or a built-in handler, as text and as JSON.
struct HandlerText {
    private let title: String
    private let details: [(String, String)]
    private let parameters: ParameterSchema?
    let object: [String: JSONValue]

    init(plugin: InstalledPlugin) {
        let description = plugin.description
        var details = [("from", Display.path(plugin.location)), ("run by", Display.path(plugin.executable))]
        func add(_ name: String, _ value: String?) {
            if let value, !value.isEmpty { details.append((name, Display.text(value))) }
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
        self.details = details
        parameters = plugin.parameters
        object = Self.withoutSecrets(description.json).object ?? [:]
    }

    init(builtIn handler: HandlerDescription) {
        title = "\(handler.reference.name): a built-in handler, see docs/handlers.md"
        let types = handler.types.map { $0.map(\.rawValue).sorted().joined(separator: ", ") }
        details = [
            ("events", handler.events.map { EventSpelling.words(of: $0).joined(separator: ", ") } ?? "all"),
            ("types", types ?? "all"),
        ]
        parameters = handler.parameters
        object = .init([
            "name": handler.reference.name, "path": "built-in", "parameters": handler.parameters?.json,
        ])
    }

    /// Returns the lines for a terminal of this width.
    func lines(width: Int?) -> [String] {
        let column = details.map(\.0.count).max() ?? 0
        var lines = [title, ""] + details.map { "\(TerminalText.padded($0.0, column))  \($0.1)" }
        lines.append("")
        let rows = parameters.map { Self.rows(of: $0, location: "") } ?? []
        guard !rows.isEmpty else {
            let hasNone = parameters?.additionalProperties == false
            return lines + [hasNone ? "It has no parameters." : "It accepts any parameters."]
        }
        let titles = ["PARAMETER", "TYPE", "DEFAULT", "REQUIRED", "DESCRIPTION"]
        return lines + TextTable.lines([titles] + rows, width: width)
    }

    /// Returns the schema without the defaults of secret parameters.
    private static func withoutSecrets(_ schema: JSONValue) -> JSONValue {
        guard var members = schema.object else { return schema }
        if members["writeOnly"] == true { members["default"] = nil }
        return .object(members.mapValues(withoutSecrets))
    }

    private static func rows(of schema: ParameterSchema, location: String) -> [[String]] {
        (schema.properties ?? [:]).sorted { $0.key < $1.key }.flatMap { key, property in
            let name = location.isEmpty ? key : "\(location).\(key)"
            let row = [
                Display.text(name), Display.text(type(of: property)),
                property.default.map { property.writeOnly == true ? "(secret)" : Display.text($0.line) } ?? "",
                schema.required?.contains(key) == true ? "yes" : "no",
                Display.text(property.description ?? property.title ?? ""),
            ]
            let inner = property.items.map { rows(of: $0, location: "\(name)[]") } ?? []
            return [row] + rows(of: property, location: name) + inner
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
        if schema.isOutput { words.append("path") }
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

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
        commandName: "plugins", abstract: "List, describe, create and test plugins.",
        discussion: """
              alight plugins                               list plugins, with errors
              alight plugins describe thumbnail            show its parameters
              alight plugins new resize --language python  create one
              alight plugins test ./plugins/resize         test it against the protocol

            \(ExitStatus.table(of: [.done, .runtimeError, .usage]))
            """,
        subcommands: [List.self, Describe.self, NewPluginCommand.self, TestPluginCommand.self],
        defaultSubcommand: List.self)

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "List the plugins that rules can use, and problems with them.",
            discussion: """
                Plugins are directories and executables in ./plugins (without --rules), in 'plugins' beside the rules \
                (and beside a directory of rules that is named 'rules'), $XDG_CONFIG_HOME/alight/plugins \
                (~/.config/alight/plugins), /etc/alight/plugins, ../lib/alight/plugins relative to the directory of this \
                program, and /usr/lib/alight/plugins. If several have the same name, the first is used, and the others \
                are shadowed. A broken plugin is an error only if a rule uses it.

                \(ExitStatus.table(of: [.done, .runtimeError, .usage]))
                """)

        @OptionGroup var place: PluginPlace

        @Flag(help: "Print one JSON object per line.")
        var json = false

        func run() throws {
            let program = try CommandContext(try place.configuration.load().settings)
            let folder = try place.folder(program)
            let listings = place.listings(program, from: folder)
            if json {
                for listing in listings { Output.standard.write(listing.object.line) }
                return
            }
            guard !listings.isEmpty else {
                let places = place.places(program, from: folder).map { "    \(Display.path($0))" }
                Output.standard.write((["there are no plugins in"] + places).joined(separator: "\n"))
                return
            }
            var table = TextTable(["NAME", "VERSION", "MODES", "STATE", "FROM"])
            for listing in listings {
                let description = listing.plugin?.description
                table.add([
                    Display.text(listing.name), description.map { Display.text($0.version) } ?? "",
                    description.map { ($0.modes ?? ["run"]).joined(separator: ", ") } ?? "", listing.state,
                    Display.path(listing.location),
                ])
            }
            Output.standard.write(table.lines(width: nil).joined(separator: "\n"))
            for listing in listings { for line in listing.remarks { Output.standard.write(line) } }
        }
    }

    struct Describe: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "describe",
            abstract: "Describe a plugin or a built-in handler: its parameters, events, modes and programs.",
            discussion: """
                \(PluginPlace.discussion)

                \(ExitStatus.table(of: [.done, .runtimeError, .usage]))
                """)

        @Argument(
            help: ArgumentHelp("The name or path of a plugin, or the name of a handler.", valueName: "name|path"),
            completion: OfferedWords.handlers)
        var name: String

        @OptionGroup var place: PluginPlace

        @Flag(help: "Print one JSON object.")
        var json = false

        func run() throws {
            let program = try CommandContext(try place.configuration.load().settings)
            if let handler = program.registry.builtInHandlers.first(where: { $0.reference.name == name }) {
                let facts = HandlerText(builtIn: handler)
                Output.standard.write(
                    json ? facts.object.line : facts.lines(width: TerminalText.width).joined(separator: "\n"))
                return
            }
            let listing = try place.find(name, program)
            guard let plugin = listing.plugin else {
                PluginPlace.say(listing.problems)
                throw Exit(.runtimeError)
            }
            let facts = HandlerText(plugin: plugin)
            if json {
                Output.standard.write(facts.object.merging(listing.object) { $1 }.line)
            } else {
                Output.standard.write(facts.lines(width: TerminalText.width).joined(separator: "\n"))
                for line in listing.remarks { Output.standard.write(line) }
            }
        }
    }
}

/// The plugins that a command considers: those in ./plugins, and those that rules in a directory would find.
struct PluginPlace: ParsableArguments {
    /// The search order for a name, for the help of commands.
    static let discussion = """
        A name is searched for in ./plugins (without --rules), then where the rules would find it; 'alight plugins \
        list --help' lists the places. A word with a slash is a path.
        """

    @Option(
        name: .customLong("rules"),
        help: ArgumentHelp(
            "A rules file, or a directory of them, whose plugins are used.",
            discussion:
                "Default: 'rules' of the configuration, else ./rules, else $XDG_CONFIG_HOME/alight/rules (as root /etc/alight/rules), else '.'.",
            valueName: "path"), completion: .file())
    var rules: String?

    @OptionGroup var configuration: ConfigurationOptions

    /// Returns the absolute directory of the rules.
    ///
    /// - Throws: `Exit` when it was named and does not exist; the error has been printed.
    func folder(_ program: CommandContext) throws -> PathBytes {
        let candidates = rules.map { [$0] } ?? program.configuredRules?.map(\.description) ?? program.defaultRules
        for candidate in candidates {
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: candidate, isDirectory: &isFolder) else { continue }
            let path = Self.absolute(candidate, program)
            return isFolder.boolValue ? path : path.parent
        }
        if let rules {
            throw Exit(.usage, error: "'\(rules)' does not exist", help: "name a rules file, or a directory")
        }
        return program.loading.currentFolder
    }

    func listings(_ program: CommandContext, from folder: PathBytes) -> [PluginListing] {
        program.discovery.inventory(
            from: folder, first: firstPlaces(program),
            builtIn: Set(program.registry.builtInHandlers.map(\.reference.name)))
    }

    /// Returns the directories that are searched for plugins, in order, without duplicates.
    func places(_ program: CommandContext, from folder: PathBytes) -> [PathBytes] {
        var seen: Set<PathBytes> = []
        return (firstPlaces(program) + program.discovery.places(from: folder)).filter { seen.insert($0).inserted }
    }

    /// Returns the default directory of `plugins new`, unless rules were named.
    private func firstPlaces(_ program: CommandContext) -> [PathBytes] {
        rules == nil ? [program.loading.currentFolder.appending("plugins")] : []
    }

    /// Returns the plugin with that name, or at that path, which is relative to the current directory.
    ///
    /// - Throws: `Exit` when there is none; the error has been printed.
    func find(_ name: String, _ program: CommandContext) throws -> PluginListing {
        if name.contains("/") || name == "." || name == ".." {
            let path = Self.absolute(name, program)
            if FileManager.default.fileExists(atPath: path.description) {
                return program.discovery.listing(of: path, called: nil)
            }
            throw Exit(.usage, error: "'\(Display.path(path))' does not exist", help: "name the directory of a plugin")
        }
        let folder = try folder(program)
        let listings = listings(program, from: folder)
        if let listing = listings.first(where: { $0.name == name && $0.shadow == nil }) { return listing }
        let nearest = Spelling.nearest(to: name, in: listings.map(\.name)).map { "write '\($0)'; " } ?? ""
        let places = places(program, from: folder).map { "'\($0)'" }.joined(separator: ", ")
        let help = "\(nearest)plugins are searched for in \(places); or name a path, as ./\(name)"
        throw Exit(.usage, error: "no plugin '\(name)'", help: help)
    }

    static func say(_ problems: [HandlerProblem]) { for problem in problems { problem.say() } }

    static func absolute(_ path: String, _ program: CommandContext) -> PathBytes {
        (path.hasPrefix("/") ? PathBytes(path) : program.loading.currentFolder.appending(Array(path.utf8))).normalized
    }
}

extension PluginListing {
    /// The state of the plugin as one word, for the table.
    var state: String { problems.isEmpty ? (shadow == nil ? "ok" : "shadowed") : "broken" }

    /// The errors, warnings and notes that are printed below the table.
    var remarks: [String] {
        var lines = problems.map { problem in
            let title = plugin == nil && !problem.message.contains("'\(name)'") ? "'\(Display.text(name))': " : ""
            return problem.line(title)
        }
        for remark in plugin?.remarks ?? [] {
            lines.append("warning: plugin '\(Display.text(name))': \(Display.text(remark))")
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
        var object: [String: JSONValue] = ["name": .string(name), "state": .string(state)]
        object.add("path", location)
        if let description = plugin?.description {
            object["version"] = .string(description.version)
            object["modes"] = .array((description.modes ?? ["run"]).map { .string($0) })
            if let summary = description.summary { object["summary"] = .string(summary) }
        }
        if let plugin, !plugin.remarks.isEmpty { object["remarks"] = .array(plugin.remarks.map { .string($0) }) }
        if !problems.isEmpty {
            object["problems"] = .array(
                problems.map { problem in
                    var members: [String: JSONValue] = ["message": .string(problem.message)]
                    if let help = problem.help { members["help"] = .string(help) }
                    return .object(members)
                })
        }
        switch shadow {
        case .builtIn: object["shadowed_by"] = "built-in"
        case .plugin(let path): object.add("shadowed_by", path)
        case nil: break
        }
        return object
    }
}

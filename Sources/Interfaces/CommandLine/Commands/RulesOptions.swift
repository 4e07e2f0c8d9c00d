import ArgumentParser
import Configuration
import Foundation
import Glibc
import Plugins
import Rules
import Storage
import System

/// The rules, for commands that take them as arguments.
struct RulesOptions: ParsableArguments {
    @Argument(
        help: ArgumentHelp("Rules files, or directories of them.", discussion: NamedRules.defaultLocations),
        completion: .file())
    var rules: [String] = []

    @Option(
        name: .customLong("tag"), help: .value("name", "Only rules with this tag; may be repeated to select several."),
        completion: OfferedWords.tags)
    var tags: [String] = []

    /// Loads the rules and prints their diagnostics.
    ///
    /// - Throws: `Exit` when they cannot be used, or when no rule has a tag that was named.
    func load(_ program: CommandContext, diagnostics format: DiagnosticFormat = .text) throws -> LoadedRules {
        var loaded = try program.load(rules, diagnostics: format)
        for tag in tags where !loaded.rulesInOrder.contains(where: { $0.tags.contains(tag) }) {
            let known = Set(loaded.rulesInOrder.flatMap(\.tags)).sorted()
            let help = Spelling.help(for: tag, candidates: known, noun: "tags") ?? "write 'tags: [NAME]' in a rule"
            throw Exit(.usage, error: "no rule has the tag '\(tag)'", help: help)
        }
        if !tags.isEmpty { loaded.keepOnly(tags: Set(tags)) }
        return loaded
    }

    /// Returns the named rules, those of the configuration, or those in the first default location that exists.
    ///
    /// - Throws: `Exit` when nothing was named and no default location exists; the error has been printed.
    func locations(_ program: CommandContext) throws -> [PathBytes] { try program.locations(rules) }
}

/// The rules, for commands with other arguments.
struct NamedRules: ParsableArguments {
    fileprivate static let defaultLocations = """
        Default: 'rules' of the configuration, else ./rules, else $XDG_CONFIG_HOME/alight/rules (as root \
        /etc/alight/rules).
        """

    @Option(
        help: .value(
            "path", "A rules file, or a directory of them; may be repeated.",
            discussion: "Default: the rules of the running instance. Without one:\n\(defaultLocations)"),
        completion: .file())
    var rules: [String] = []

    /// Loads the rules and prints their diagnostics.
    ///
    /// An unset environment variable rejects only the rules that need it.
    ///
    /// - Throws: `Exit` when they cannot be used.
    func load(_ program: CommandContext) throws -> LoadedRules {
        try program.load(rules, diagnostics: .text, allowsUnsetVariables: true)
    }
}

extension CommandContext {
    /// Returns the named rules, else those of the configuration, else those in the first default location that exists;
    /// nil if there are none.
    func rulePaths(_ named: [PathBytes]) -> [PathBytes]? {
        if !named.isEmpty { return named }
        return configuredRules
            ?? defaultRules.first { FileManager.default.fileExists(atPath: $0) }.map { [PathBytes($0)] }
    }

    /// Returns the rules like ``rulePaths(_:)``.
    ///
    /// - Throws: `Exit` when there are none; the error has been printed.
    fileprivate func locations(_ named: [String]) throws -> [PathBytes] {
        if let paths = rulePaths(RawArguments.paths(named)) { return paths }
        throw Exit(
            .rulesInvalid, error: "there are no rules",
            help: "name a rules file, or put one into \(defaultRules.joined(separator: " or "))")
    }

    /// Loads the named or default rules without printing diagnostics; returns nil if there are none.
    func rulesInSilence(_ named: [PathBytes]) -> LoadedRules? {
        rulePaths(named).flatMap { $0.isEmpty ? nil : loader.load($0) }
    }

    /// The rule loader.
    var loader: RuleLoader { RuleLoader(catalog: registry, hostEnvironment: loading) }

    /// Loads the rules and prints their diagnostics.
    ///
    /// - Throws: `Exit` when they cannot be used.
    fileprivate func load(
        _ named: [String], diagnostics format: DiagnosticFormat, allowsUnsetVariables: Bool = false
    ) throws -> LoadedRules {
        var loading = loading
        loading.allowsUnsetVariables = allowsUnsetVariables
        let loaded = RuleLoader(catalog: registry, hostEnvironment: loading).load(try locations(named))
        for diagnostic in loaded.diagnostics { diagnostic.log(as: format) }
        if loaded.hasErrors { throw Exit(.rulesInvalid) }
        guard !loaded.rulesInOrder.isEmpty || !loaded.refusedRules.isEmpty else {
            let files = Display.list(loaded.files)
            throw Exit(.rulesInvalid, error: "there is no rule in \(files)", help: "add one below 'rules:'")
        }
        return loaded
    }
}

extension LoadedRules {
    /// Returns the rule with that name, even if it is disabled.
    ///
    /// - Throws: `Exit` when there is none; the error has been printed.
    func rule(named name: String) throws -> Rule {
        if let rule = rulesInOrder.first(where: { $0.name == name }) { return rule }
        if refusedRules.contains(name) {
            throw Exit(
                .rulesInvalid, error: "the rule '\(name)' needs an environment variable that is not set",
                help: "set it here; while an instance runs with this journal, its variables are used")
        }
        let help = Spelling.help(for: name, candidates: rulesInOrder.map(\.name), noun: "rules")
        throw Exit(.usage, error: "there is no rule '\(name)'", help: help)
    }
}

/// Shell completions: the names of rules, tags, handlers and plugins, and the ids of jobs.
///
/// The scripts of `--generate-completion-script` run the program to get them. It then prints no messages and starts no
/// plugins.
enum OfferedWords {
    static let rules = custom { $0.rulesInSilence($1)?.rulesInOrder.map(\.name) ?? [] }
    static let tags = custom { Set($0.rulesInSilence($1)?.rulesInOrder.flatMap(\.tags) ?? []).sorted() }
    static let handlers = custom { $0.registry.names(from: directory($1, $0)) }
    static let plugins = custom { $0.discovery.names(from: directory($1, $0)) }

    /// Completes the ids of the newest jobs in these states, or in any state if the set is empty.
    static func jobs(_ states: Set<JobState> = []) -> CompletionKind {
        .custom { words, _, _ in
            guard let options = try? JournalOptions.parse(options(["--journal", "--config"], in: words)),
                let (settings, diagnostics) = try? options.configuration.read(options.apply),
                !diagnostics.contains(where: { $0.severity == .error }),
                let file = settings.settings.journalFile,
                let reader = try? JournalReader(file, isTraceless: true),
                let found = try? reader.jobs(JournalQuery(states: states, limit: 50))
            else { return [] }
            return found.jobs.map(\.id.description)
        }
    }

    /// Completes one of several words in a comma-separated list.
    static func list(of words: [String]) -> CompletionKind {
        .custom { _, _, typed in
            let first = typed.lastIndex(of: ",").map { typed[...$0] } ?? ""
            return words.map { first + $0 }
        }
    }

    /// Completes words that depend on the values of each `--rules`.
    private static func custom(
        _ words: @escaping @Sendable (CommandContext, [PathBytes]) -> [String]
    ) -> CompletionKind {
        .custom { line, _, _ in
            let rules = options(["--rules"], in: line).filter { $0 != "--rules" }.map { PathBytes($0) }
            return (try? CommandContext(startsPlugins: false)).map { words($0, rules) } ?? []
        }
    }

    /// Returns the options with these names on a command line, with their values.
    private static func options(_ names: [String], in words: [String]) -> [String] {
        zip(words, words.dropFirst()).flatMap { names.contains($0) && !$1.isEmpty ? [$0, $1] : [] }
    }

    /// Returns the directory whose plugins are used.
    private static func directory(_ rules: [PathBytes], _ program: CommandContext) -> PathBytes {
        program.rulesInSilence(rules)?.files.first.map { program.path($0).parent } ?? program.loading.currentDirectory
    }
}

/// The arguments of the program as bytes.
///
/// The parser provides them as strings, which replace bytes that are not valid UTF-8.
enum RawArguments {
    /// Returns the absolute path of a file that an option names.
    ///
    /// - Throws: `ValidationError` when it is empty, or names a directory.
    static func file(_ text: String, option: String, noun: String) throws -> PathBytes {
        let path = paths([text])[0]
        if path.bytes.isEmpty { throw ValidationError("'\(option)' is empty; name a \(noun)") }
        if path.bytes.last == .slash {
            throw ValidationError("'\(option) \(Display.path(path))' is a directory; name a \(noun)")
        }
        return PathBytes.current.resolving(path.bytes).normalized
    }

    /// Returns the exact paths of parsed arguments, in the order in which they were given.
    static func paths(_ arguments: [String]) -> [PathBytes] {
        var raw: [PathBytes: [PathBytes]] = [:]
        for case let argument? in UnsafeBufferPointer(start: CommandLine.unsafeArgv, count: Int(CommandLine.argc)) {
            var words = [PathBytes(UnsafeRawBufferPointer(start: argument, count: strlen(argument)))]
            // `--option=PATH` is one argument.
            if words[0].bytes.starts(with: "--".utf8) {
                words += words[0].bytes.split(separator: UInt8(ascii: "="), maxSplits: 1).dropFirst().map {
                    PathBytes($0)
                }
            }
            for word in words { raw[PathBytes(word.description), default: []].append(word) }
        }
        return arguments.map { argument in
            let repaired = PathBytes(argument)
            guard let found = raw[repaired]?.first else { return repaired }
            raw[repaired]?.removeFirst()
            return found
        }
    }
}

import Glibc
package import Rules
package import System

/// Loads rules files and reports all problems at once.
package struct RuleLoader: Sendable {
    /// The environment on which rules depend, since the core reads no environment itself.
    package struct Environment: Sendable {
        /// The value of `~`.
        package var home: String?
        /// Returns the value of an environment variable, for `${env:NAME}`.
        package var environment: @Sendable (String) -> String?
        /// The absolute directory to which the paths of rules files are relative.
        package var currentDirectory: PathBytes
        /// The limits and restrictions that programs can be given.
        package var machine = Machine()
        /// Returns a problem if the process runs as root and a user other than root could change the file.
        package var distrust: @Sendable (PathBytes) -> Problem? = { _ in nil }
        /// Returns a problem if root would run a command that another user could change.
        package var distrustCommand:
            @Sendable (_ executable: PathBytes, _ arguments: [[UInt8]], _ searchPath: [UInt8]) -> Problem? = {
                _, _, _ in nil
            }
        /// Whether an unset variable is a warning and rejects only the rules that need it.
        package var allowsUnsetVariables = false

        package init(
            home: String?, environment: @escaping @Sendable (String) -> String?, currentDirectory: PathBytes
        ) {
            (self.home, self.environment, self.currentDirectory) = (home, environment, currentDirectory)
        }
    }

    private let catalog: any HandlerCatalog
    private let hostEnvironment: Environment

    package init(catalog: any HandlerCatalog, hostEnvironment: Environment) {
        (self.catalog, self.hostEnvironment) = (catalog, hostEnvironment)
    }

    /// Loads files and directories.
    ///
    /// In a directory, the `*.yaml` and `*.yml` files are read, sorted by name; hidden files and subdirectories are
    /// skipped. A file that is named twice is read once.
    package func load(_ paths: [PathBytes]) -> LoadedRules {
        var loaded = LoadedRules()
        var rules: [DecodedRule] = []
        // Some problems of a file are detected only after all other files are read.
        var diagnostics: [() -> [Diagnostic]] = []
        let catalog = CatalogCache(catalog)
        let names = RuleNames()
        var known: Set<PathBytes> = []
        for found in paths.flatMap({ files($0) }) {
            switch found {
            case .failure(let diagnostic): diagnostics.append { [diagnostic] }
            case .success(let file) where known.insert(file.path).inserted:
                loaded.files.append(file.path)
                let (decoded, found) = load(file, catalog: catalog, names: names)
                diagnostics.append(found)
                rules += decoded
            case .success: break
            }
        }
        loaded.refusedRules = names.claimed.subtracting(rules.map(\.rule.name))
        RuleNames.makeUnique(&rules)
        RuleNames.check(rules)
        LoopCheck(rules).run()
        RemovalCheck(rules).run()
        // Several files may use the same plugin.
        var seen: Set<Diagnostic> = []
        loaded.diagnostics = diagnostics.flatMap { $0() }.filter { seen.insert($0).inserted }
        loaded.disabledRules = rules.filter { !$0.isEnabled }.map(\.rule)
        loaded.rulesInOrder = rules.map(\.rule)
        loaded.ruleset = Ruleset(rules.filter(\.isEnabled).map(\.rule), listed: loaded.rulesInOrder)
        return loaded
    }

    // MARK: - One file

    private func load(
        _ file: RulesFile, catalog: CatalogCache, names: RuleNames
    ) -> (rules: [DecodedRule], diagnostics: () -> [Diagnostic]) {
        do throws(Diagnostic) {
            let yaml = try YAMLFile(file.path, shown: file.shown, hostEnvironment)
            let problems = yaml.problems
            let decoder = RuleDecoder(
                source: yaml.source, directory: file.path.parent, hostEnvironment: hostEnvironment,
                catalog: catalog, names: names, problems: problems, omissions: yaml.omissions)
            return (yaml.isReadable ? decoder.rules(from: yaml.root) : [], { problems.sorted() })
        } catch { return ([], { [error] }) }
    }

    // MARK: - Files and directories

    private struct RulesFile {
        /// The absolute path.
        var path: PathBytes
        /// The path as the user named the file, or the directory that contains it.
        var shown: String
    }

    /// Returns the rules files for a path, and the reasons why there are none.
    private func files(_ named: PathBytes) -> [Result<RulesFile, Diagnostic>] {
        let path = named.description
        func refused(_ message: String, help: String?) -> [Result<RulesFile, Diagnostic>] {
            [.failure(Diagnostic(.error, file: path.isEmpty ? "''" : path, message: message, help: help))]
        }
        guard !path.isEmpty else { return refused("the path is empty", help: nil) }
        let absolute = hostEnvironment.currentDirectory.resolving(named.bytes).normalized
        switch FileReading.kind(of: absolute) {
        case .directory:
            do throws(Problem) {
                let files = try filesInDirectory(absolute, shown: path)
                guard files.isEmpty else { return files }
            } catch { return refused(error.message, help: error.help) }
            let help = "give rules files a name that ends in '.yaml' or '.yml'"
            return refused("the directory contains no rules file", help: help)
        case .missing(ENOENT), .missing(ENOTDIR):
            let help = nearest(to: absolute, shown: path) ?? "give rules files, or directories that contain them"
            return refused("no such file or directory", help: help)
        default: return [.success(RulesFile(path: absolute, shown: path))]
        }
    }

    private func filesInDirectory(
        _ directory: PathBytes, shown: String
    ) throws(Problem) -> [Result<RulesFile, Diagnostic>] {
        let prefix = shown.hasSuffix("/") ? shown : shown + "/"
        return try FileReading.names(in: directory).filter(Self.isRulesFile).map { name in
            let file = RulesFile(path: directory.appending(name), shown: prefix + String(decoding: name, as: UTF8.self))
            guard case .directory = FileReading.kind(of: file.path) else { return .success(file) }
            return .failure(
                Diagnostic(
                    .warning, file: file.shown, message: "this is a directory; rules in it are not read",
                    help: "pass it in addition to '\(shown)', or rename it"))
        }
    }

    /// The ends of the names of rules files in a directory.
    package static let suffixes = [".yaml", ".yml"]

    /// Whether a file with this name in a directory is a rules file.
    package static func isRulesFile(_ name: [UInt8]) -> Bool {
        name.first != .dot && suffixes.contains { name.suffix($0.utf8.count).elementsEqual($0.utf8) }
    }

    /// Returns help with the name in the same directory that is most similar to a missing one.
    private func nearest(to path: PathBytes, shown: String) -> String? {
        guard let names = try? FileReading.names(in: path.parent), let name = PathBytes(path.lastComponent).text,
            let near = Spelling.nearest(
                to: name, in: names.compactMap { PathBytes($0).text }.filter { !$0.hasPrefix(".") })
        else { return nil }
        return "write '\(shown.dropLast(name.count))\(near)'"
    }
}

/// The result of loading rules.
package struct LoadedRules: Sendable {
    /// The enabled rules without errors.
    ///
    /// Use it only if there are no errors: a rule that failed to load may be one that another rule needs.
    package var ruleset = Ruleset([])
    /// The rules with `enabled: false`, which are checked like all others.
    package var disabledRules: [Rule] = []
    /// The names of the rules that have an error, or need a variable that is not set.
    package var refusedRules: Set<String> = []
    /// The enabled rules that are excluded because they have none of the requested tags.
    package var untaggedRules: [Rule] = []
    /// The enabled and disabled rules, in the order of files and entries.
    package var rulesInOrder: [Rule] = []
    /// The diagnostics, in the order of files and lines.
    package var diagnostics: [Diagnostic] = []
    /// The absolute paths of the rules files, including those with errors.
    package var files: [PathBytes] = []

    /// Removes the rules that have none of the tags; their ledger remains, as for disabled rules.
    package mutating func keepOnly(tags: Set<String>) {
        untaggedRules += ruleset.rules.filter { tags.isDisjoint(with: $0.tags) }
        ruleset = Ruleset(
            ruleset.rules.filter { !tags.isDisjoint(with: $0.tags) },
            listed: ruleset.listed.filter { !tags.isDisjoint(with: $0.tags) })
    }

    /// Whether an error prevents the rules from running.
    package var hasErrors: Bool { diagnostics.contains { $0.severity == .error } }
}

/// Queries the catalog once per name, since a query may read the disk or start a plugin.
final class CatalogCache {
    private let catalog: any HandlerCatalog
    private var found: [PathBytes: [String: Result<HandlerDescription, Problem>]] = [:]
    private var names: [PathBytes: [String]] = [:]

    init(_ catalog: any HandlerCatalog) { self.catalog = catalog }

    func find(_ name: String, from directory: PathBytes) -> Result<HandlerDescription, Problem> {
        if let known = found[directory]?[name] { return known }
        let result = catalog.find(name, from: directory)
        found[directory, default: [:]][name] = result
        return result
    }

    func names(from directory: PathBytes) -> [String] {
        if let known = names[directory] { return known }
        let list = catalog.names(from: directory)
        names[directory] = list
        return list
    }
}

extension RuleLoader {
    /// The limits that the machine and Alight's own user set for the programs it starts.
    package struct Machine: Sendable {
        /// Whether Alight runs as root.
        package var isRoot = true
        /// The lowest nice value that programs can be given.
        package var leastNice = -20
        /// The ABI version of Landlock; a negative errno if Landlock is not available.
        package var landlock: Int32 = 4
        package var canShutOffNetwork = true
        package var accounts = Accounts()

        /// Creates a machine without limits.
        package init() {}

        /// Creates a description of this machine and the current user.
        package init(landlock: Int32, canShutOffNetwork: Bool) {
            self.landlock = landlock
            self.canShutOffNetwork = canShutOffNetwork
            isRoot = geteuid() == 0
            leastNice = isRoot ? -20 : Self.leastNiceOfOthers
        }

        /// The lowest nice value of a process without privileges: its own, or that of RLIMIT_NICE, which counts down
        /// from 20.
        private static var leastNiceOfOthers: Int {
            let own = Int(getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0))
            var limit = rlimit()
            guard getrlimit(__rlimit_resource_t(__RLIMIT_NICE.rawValue), &limit) == 0 else { return own }
            return min(own, 20 - Int(min(limit.rlim_cur, 40)))
        }
    }
}

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
        package var currentFolder: PathBytes
        /// The directories in which `exec` searches for a program without a slash; also the PATH of plugins.
        package var programFolders: [String]
        /// Returns the uid of the named user.
        package var user: @Sendable (String) -> UInt32? = { Self.user(named: $0) }
        /// Returns the gid of the named group.
        package var group: @Sendable (String) -> UInt32? = { Self.group(named: $0) }
        /// The limits and restrictions that programs can be given.
        package var machine = Machine()
        /// Returns a problem if the process runs as root and a user other than root could change the file.
        package var distrust: @Sendable (PathBytes) -> HandlerProblem? = { _ in nil }
        /// Returns a problem if root would run a command that another user could change.
        package var distrustCommand: @Sendable (_ executable: PathBytes, _ arguments: [[UInt8]]) -> HandlerProblem? = {
            _, _ in nil
        }
        /// Whether an unset variable is a warning and rejects only the rules that need it.
        package var allowsUnsetVariables = false
        /// The maximum size in bytes; a larger file is rejected unread.
        package var maximumFileSize: Int

        package init(
            home: String?, environment: @escaping @Sendable (String) -> String?, currentFolder: PathBytes,
            programFolders: [String] = ["/usr/local/bin", "/usr/bin", "/bin"], maximumFileSize: Int = 4 << 20
        ) {
            self.home = home
            self.environment = environment
            self.currentFolder = currentFolder
            self.programFolders = programFolders
            self.maximumFileSize = maximumFileSize
        }
    }

    private let catalog: any HandlerCatalog
    private let surroundings: Environment

    package init(catalog: any HandlerCatalog, surroundings: Environment) {
        self.catalog = catalog
        self.surroundings = surroundings
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
            guard case .file(let file) = found else {
                if case .problem(let diagnostic) = found { diagnostics.append { [diagnostic] } }
                continue
            }
            guard known.insert(file.path).inserted else { continue }
            loaded.files.append(file.path)
            let (decoded, found) = load(file, catalog: catalog, names: names)
            diagnostics.append(found)
            if rules.isEmpty { rules = decoded } else { rules += decoded }
        }
        RuleNames.check(rules)
        LoopCheck(rules).run()
        RemovalCheck(rules).run()
        loaded.diagnostics = diagnostics.flatMap { $0() }
        loaded.disabledRules = rules.filter { !$0.isEnabled }.map(\.rule)
        loaded.rulesInOrder = rules.map(\.rule)
        loaded.refusedRules = names.claimed.subtracting(loaded.rulesInOrder.map(\.name))
        let isAll = loaded.disabledRules.isEmpty
        loaded.ruleset = Ruleset(
            isAll ? loaded.rulesInOrder : rules.filter(\.isEnabled).map(\.rule), listed: loaded.rulesInOrder)
        return loaded
    }

    // MARK: - One file

    private func load(
        _ file: RulesFile, catalog: CatalogCache, names: RuleNames
    ) -> (rules: [DecodedRule], diagnostics: () -> [Diagnostic]) {
        if let problem = surroundings.distrust(file.path) {
            let diagnostic = Diagnostic(.error, file: file.shown, message: problem.message, help: problem.help)
            return ([], { [diagnostic] })
        }
        let source: SourceText
        do throws(FileReading.Problem) {
            let bytes = try FileReading.read(file.path, limit: surroundings.maximumFileSize)
            switch TextCheck.source(file: file.shown, bytes: bytes) {
            case .success(let text): source = text
            case .failure(let diagnostic): return ([], { [diagnostic] })
            }
        } catch {
            let diagnostic = Diagnostic(.error, file: file.shown, message: error.message, help: error.help)
            return ([], { [diagnostic] })
        }
        let document: (root: YAMLNode?, problems: [YAMLProblem])
        let problems = DiagnosticCollector(source)
        do throws(YAMLProblem) {
            document = try YAMLParser.parse(source)
            for problem in document.problems { problems.error(problem.message, at: problem.range, help: problem.help) }
        } catch {
            problems.error(error.message, at: error.range, help: error.help)
            return ([], { problems.sorted() })
        }
        let decoder = RuleDecoder(
            source: source, folder: file.path.parent, stem: file.stem, surroundings: surroundings, catalog: catalog,
            names: names, problems: problems, faults: document.problems.map(\.range.lowerBound).sorted())
        return (decoder.rules(from: document.root), { problems.sorted() })
    }

    // MARK: - Files and directories

    private struct RulesFile {
        /// The absolute path.
        var path: PathBytes
        /// The path as the user named the file, or the directory that contains it.
        var shown: String

        var stem: String {
            let name = path.lastComponent
            let end = name.lastIndex(of: .dot).flatMap { $0 > name.startIndex ? $0 : nil } ?? name.endIndex
            return String(decoding: name[..<end], as: UTF8.self)
        }
    }

    private enum Found {
        case file(RulesFile)
        case problem(Diagnostic)

        static func problem(_ severity: Diagnostic.Severity, _ file: String, _ message: String, help: String?) -> Found
        {
            .problem(Diagnostic(severity, file: file, message: message, help: help))
        }
    }

    /// Returns the rules files for a path.
    private func files(_ named: PathBytes) -> [Found] {
        let path = named.description
        guard !path.isEmpty else { return [.problem(.error, "''", "the path is empty", help: nil)] }
        let folder = surroundings.currentFolder
        let absolute = folder.resolving(named.bytes).normalized
        switch FileReading.kind(of: absolute) {
        case .folder:
            return filesInFolder(absolute, shown: path)
        case .missing(ENOENT), .missing(ENOTDIR):
            let help = nearest(to: absolute, shown: path) ?? "give rules files, or directories that contain them"
            return [.problem(.error, path, "no such file or directory", help: help)]
        default:
            return [.file(RulesFile(path: absolute, shown: path))]
        }
    }

    private func filesInFolder(_ folder: PathBytes, shown: String) -> [Found] {
        let prefix = shown.hasSuffix("/") ? shown : shown + "/"
        let names: [[UInt8]]
        do throws(FileReading.Problem) {
            names = try FileReading.names(in: folder).filter(Self.isRulesFile)
        } catch {
            return [.problem(.error, shown, error.message, help: error.help)]
        }
        guard !names.isEmpty else {
            return [
                .problem(
                    .error, shown, "the directory contains no rules file",
                    help: "give rules files a name that ends in '.yaml' or '.yml'")
            ]
        }
        return names.map { name in
            let file = RulesFile(path: folder.appending(name), shown: prefix + String(decoding: name, as: UTF8.self))
            guard case .folder = FileReading.kind(of: file.path) else { return .file(file) }
            return .problem(
                .warning, file.shown, "this is a directory; rules in it are not read",
                help: "pass it in addition to '\(shown)', or rename it")
        }
    }

    private static func isRulesFile(_ name: [UInt8]) -> Bool {
        name.first != .dot && (name.suffix(5).elementsEqual(".yaml".utf8) || name.suffix(4).elementsEqual(".yml".utf8))
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

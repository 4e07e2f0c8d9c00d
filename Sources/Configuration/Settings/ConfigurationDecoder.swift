import Rules
import System

/// Converts the tree of a configuration file into values.
struct ConfigurationDecoder: NodeReading {
    let source: SourceText
    let hostEnvironment: RuleLoader.Environment
    let problems: DiagnosticCollector
    /// The absolute directory to which the file's paths are relative; nil for an environment variable.
    let directory: PathBytes?
    /// The environment variable that is read; nil for the file.
    var variable: String?

    /// Reads the whole file; an empty one sets nothing.
    func read(_ root: YAMLNode, into configuration: inout Configuration) {
        if root.isNull { return }
        guard let entries = root.entries else {
            return problems.error(
                "a configuration must be a mapping, not \(root.noun)", at: mark(root),
                help: "write keys such as 'jobs: 4'; rules belong in separate files")
        }
        checkKeys(
            entries, known: Self.keys.names, noun: "keys of the configuration",
            misplaced: (RuleDecoder.keys.names + RuleDecoder.topKeys).filter { Self.keys[$0] == nil }
        ) { _ in "it belongs in a rules file, see docs/rules.md" }
        Self.keys.read(entries, by: self, into: &configuration)
    }

    /// Returns the origin of an entry's value.
    func origin(of entry: YAMLNode.Entry) -> SettingOrigin {
        variable.map { .variable($0) } ?? .file(source.location(at: entry.key.range.lowerBound))
    }

    /// Reads a string and converts it with the closure.
    func checked<Value>(_ entry: YAMLNode.Entry, _ read: (String) throws(Problem) -> Value) -> Value? {
        parsed(entry.value, name: quoted(entry.name), at: mark(entry), read)
    }

    /// Reads one URL or a list of them.
    func urls(_ entry: YAMLNode.Entry) -> [String]? {
        oneOrMore(entry, noun: "https://alight.example.org")?.lazy.map { node in
            parsed(
                node, name: quoted(entry.name), at: mark(node), help: "write a URL", ConfigurationValues.externalURL)
        }.complete()
    }

    /// Returns the nodes of a list, or a single node as a list.
    private func oneOrMore(_ entry: YAMLNode.Entry, noun: String) -> [YAMLNode]? {
        entry.value.text != nil && !entry.value.isNull ? [entry.value] : elements(entry, noun: noun)
    }

    // MARK: - Paths

    /// Reads the paths of rules; rules themselves are reported, since they are not allowed here.
    func rules(_ entry: YAMLNode.Entry) -> [PathBytes]? {
        if entry.value.elements?.contains(where: { $0.entries != nil }) == true {
            return reject(
                "'rules' in the configuration lists files and directories, not rules", at: mark(entry),
                help: "move the rules into a separate file, and write its path here")
        }
        return paths(entry, noun: "~/rules")
    }

    /// Reads one path or a list of them.
    func paths(_ entry: YAMLNode.Entry, noun: String) -> [PathBytes]? {
        guard let nodes = oneOrMore(entry, noun: noun) else { return nil }
        return nodes.map { path($0, name: quoted(entry.name), at: mark($0)) }.complete()
    }

    /// Reads the path of a file.
    func file(_ entry: YAMLNode.Entry) -> PathBytes? {
        guard let path = path(entry.value, name: quoted(entry.name), at: mark(entry)) else { return nil }
        guard entry.value.text?.hasSuffix("/") != true else {
            return reject(
                "\(quoted(entry.name)) must be a file, not the directory \(quoted(entry.value.text ?? ""))",
                at: mark(entry), help: "write the path of a file in it")
        }
        return path
    }

    /// Reads a path relative to the file's directory, with `~/` and `${env:NAME}` expanded.
    private func path(_ node: YAMLNode, name: String, at range: Range<Int>) -> PathBytes? {
        guard let text = text(node, name: name, at: range, help: "write a path") else { return nil }
        guard !text.isEmpty, !text.utf8.contains(0) else {
            return reject("\(name) is empty", at: range, help: "write a path, or remove the key")
        }
        var home: [UInt8]?
        if text == "~" || text.hasPrefix("~/") {
            home = self.home(for: node)
            guard home != nil else { return nil }
        }
        let errorsBefore = problems.errorCount
        let scan = PlaceholderScan(text)
        let template = Template(scan, home: home) { token in
            guard problems.errorCount == errorsBefore else { return nil }
            let range = mark(node, offset: token.range.lowerBound, length: token.range.count)
            guard let name = token.variable else {
                return reject(
                    "placeholder '${\(escaped(token.word, limit: 80))}' has no value here", at: range,
                    help: "the only placeholder allowed here is ${env:NAME}")
            }
            if let value = hostEnvironment.environment(name) { return .literal(Array(value.utf8)) }
            reportUnset(name, at: range)
            return nil
        }
        if problems.errorCount == errorsBefore, scan.unclosed != nil { reportUnclosed(text, at: mark(node)) }
        guard problems.errorCount == errorsBefore, let bytes = template.literal else { return nil }
        if let directory { return directory.resolving(bytes).normalized }
        guard bytes.first == .slash else {
            return reject(
                "\(name) must be an absolute path, not \(quoted(text))", at: range, help: "write the full path")
        }
        return PathBytes(bytes).normalized
    }
}

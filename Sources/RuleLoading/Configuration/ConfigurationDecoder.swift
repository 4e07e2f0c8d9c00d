import FileEvents
import Rules

/// Turns the tree of a configuration's file into values.
struct ConfigurationDecoder: NodeReading {
    let source: SourceText
    let surroundings: RuleLoader.Surroundings
    let problems: DiagnosticCollector
    /// The absolute folder of the file, from which relative paths are meant.
    let folder: PathBytes

    static let keys = ["journal", "retention", "listen", "external_url", "control", "jobs", "log", "plugins", "rules"]
    static let retentionKeys = ["period", "jobs", "size"]
    static let jobsKeys = ["limit", "extra"]
    static let logKeys = ["format", "level"]

    /// Reads the whole file; one without a value in it says nothing.
    func configuration(from root: YAMLNode?) -> Configuration {
        var configuration = Configuration()
        guard let root, !root.isNull else { return configuration }
        guard let entries = root.entries else {
            problems.error(
                "a configuration must be a mapping, not \(root.noun)", at: mark(root),
                help: "write keys such as 'jobs: 4'; rules have files of their own")
            return configuration
        }
        checkKeys(
            entries, known: Self.keys, noun: "keys of the configuration",
            misplaced: (RuleDecoder.ruleKeys + RuleDecoder.topKeys).filter { !Self.keys.contains($0) }
        ) { _ in "it belongs into a rules file, see docs/rules.md" }
        configuration.journal = root.entry("journal").flatMap { entry in
            setting(entry, entry.value.text == ":memory:" ? .memory : file(entry).map { .file($0) })
        }
        if let entry = root.entry("retention") { retention(entry, &configuration) }
        configuration.listen = root.entry("listen").flatMap { entry in
            orFalse(entry) { checked(entry, ConfigurationValues.address) }
        }
        configuration.externalURLs = root.entry("external_url").flatMap { setting($0, urls($0)) }
        configuration.control = root.entry("control").flatMap { entry in orFalse(entry) { file(entry) } }
        if let entry = root.entry("jobs") { jobs(entry, &configuration) }
        if let entry = root.entry("log") {
            _ = mapping(entry, keys: Self.logKeys) { node in
                configuration.logFormat = node.entry("format").flatMap { setting($0, choice($0)) }
                configuration.logLevel = node.entry("level").flatMap { setting($0, choice($0)) }
                return true
            }
        }
        configuration.plugins = root.entry("plugins").flatMap { setting($0, paths($0, noun: "~/plugins")) }
        configuration.rules = root.entry("rules").flatMap { rules($0) }
        return configuration
    }

    private func setting<Value>(_ entry: YAMLNode.Entry, _ value: Value?) -> Setting<Value>? {
        value.map { Setting($0, from: .file(source.place(at: entry.key.range.lowerBound))) }
    }

    /// False for nothing, or a value.
    private func orFalse<Value>(_ entry: YAMLNode.Entry, _ read: () -> Value?) -> Setting<Value?>? {
        guard entry.value.isPlain, let text = entry.value.text, case .bool(let isTrue) = PlainScalar(text) else {
            return read().flatMap { setting(entry, .some(.some($0))) }
        }
        if !isTrue { return setting(entry, .some(nil)) }
        reportType(entry, "false or a value")
        return nil
    }

    /// A text that is something more.
    private func checked<Value>(
        _ entry: YAMLNode.Entry, _ read: (String) throws(HandlerProblem) -> Value
    ) -> Value? {
        guard let text = text(entry) else { return nil }
        do throws(HandlerProblem) {
            return try read(text)
        } catch {
            problems.error(error.message, at: entry.value.range, help: error.help)
            return nil
        }
    }

    /// A mapping, or how long alone.
    private func retention(_ entry: YAMLNode.Entry, _ configuration: inout Configuration) {
        if entry.value.text != nil, !entry.value.isNull {
            configuration.retentionPeriod = setting(entry, checked(entry, ConfigurationValues.period))
            return
        }
        _ = mapping(entry, "a duration or a mapping", keys: Self.retentionKeys) { node in
            configuration.retentionPeriod = node.entry("period").flatMap {
                setting($0, checked($0, ConfigurationValues.period))
            }
            configuration.retentionJobs = node.entry("jobs").flatMap {
                setting($0, integer($0, in: Configuration.retentionJobsRange))
            }
            configuration.retentionSize = node.entry("size").flatMap {
                setting($0, checked($0, ConfigurationValues.retentionSize))
            }
            return true
        }
    }

    /// A mapping, or the limit alone.
    private func jobs(_ entry: YAMLNode.Entry, _ configuration: inout Configuration) {
        guard entry.value.entries != nil else {
            configuration.jobs = setting(entry, integer(entry, in: Configuration.jobsRange))
            return
        }
        _ = mapping(entry, keys: Self.jobsKeys) { node in
            configuration.jobs = node.entry("limit").flatMap { setting($0, integer($0, in: Configuration.jobsRange)) }
            configuration.extraJobs = node.entry("extra").flatMap {
                setting($0, integer($0, in: Configuration.extraJobsRange))
            }
            return true
        }
    }

    /// One address of a page or a list of them.
    private func urls(_ entry: YAMLNode.Entry) -> [String]? {
        guard let nodes = oneOrMore(entry, noun: "https://alight.example.org") else { return nil }
        var urls: [String] = []
        for node in nodes {
            guard let text = text(node, name: quoted(entry.name), at: mark(node), help: "write a URL") else {
                return nil
            }
            do throws(HandlerProblem) {
                urls.append(try ConfigurationValues.externalURL(text))
            } catch {
                problems.error(error.message, at: mark(node), help: error.help)
                return nil
            }
        }
        return urls
    }

    /// The nodes of a list, or one that stands for a list of itself.
    private func oneOrMore(_ entry: YAMLNode.Entry, noun: String) -> [YAMLNode]? {
        entry.value.text != nil && !entry.value.isNull ? [entry.value] : elements(entry, noun: noun)
    }

    // MARK: - Paths

    /// Where rules are; not the rules themselves, which some put here.
    private func rules(_ entry: YAMLNode.Entry) -> Setting<[PathBytes]>? {
        if entry.value.elements?.contains(where: { $0.entries != nil }) == true {
            problems.error(
                "'rules' of the configuration names files and folders, and holds no rules", at: mark(entry),
                help: "put the rules into a file of their own, and write its path here")
            return nil
        }
        return setting(entry, paths(entry, noun: "~/rules"))
    }

    /// One path or a list of them.
    private func paths(_ entry: YAMLNode.Entry, noun: String) -> [PathBytes]? {
        guard let nodes = oneOrMore(entry, noun: noun) else { return nil }
        let paths = nodes.map { path($0, name: quoted(entry.name), at: mark($0)) }
        let known = paths.compactMap { $0 }
        return known.count == paths.count ? known : nil
    }

    /// The path of a file.
    private func file(_ entry: YAMLNode.Entry) -> PathBytes? {
        guard let path = path(entry.value, name: quoted(entry.name), at: mark(entry)) else { return nil }
        guard entry.value.text?.hasSuffix("/") != true else {
            problems.error(
                "\(quoted(entry.name)) is the folder \(quoted(entry.value.text ?? ""))", at: mark(entry),
                help: "name a file in it")
            return nil
        }
        return path
    }

    /// A path, relative ones meant from the file's folder, with `~/` and `${env:NAME}` filled in.
    private func path(_ node: YAMLNode, name: String, at range: Range<Int>) -> PathBytes? {
        guard let text = text(node, name: name, at: range, help: "write a path") else { return nil }
        guard !text.isEmpty, !text.utf8.contains(0) else {
            problems.error("\(name) is empty", at: range, help: "write a path, or remove the key")
            return nil
        }
        var bytes: [UInt8] = []
        var written = Array(text.utf8)
        var start = 0
        if text == "~" || text.hasPrefix("~/") {
            guard let home = home(for: node) else { return nil }
            bytes += home
            start = 1
        }
        for token in PlaceholderScan.tokens(in: text) {
            let range = mark(node, offset: token.range.lowerBound, length: token.range.count)
            guard token.word.hasPrefix("env:") else {
                problems.error(
                    "placeholder '${\(escaped(token.word, limit: 80))}' has no value here", at: range,
                    help: "of placeholders only ${env:NAME} can stand here")
                return nil
            }
            guard let value = surroundings.environment(String(token.word.dropFirst(4))) else {
                reportUnset(String(token.word.dropFirst(4)), at: range)
                return nil
            }
            bytes += written[start..<token.range.lowerBound] + Array(value.utf8)
            start = token.range.upperBound
        }
        written.removeFirst(start)
        if written.firstRange(of: "${".utf8).map({ $0.lowerBound == 0 || written[$0.lowerBound - 1] != 0x24 }) == true {
            reportUnclosed(text, at: mark(node))
            return nil
        }
        bytes += written.replacing(Array("$${".utf8), with: Array("${".utf8))
        return folder.resolving(bytes).normalized
    }
}

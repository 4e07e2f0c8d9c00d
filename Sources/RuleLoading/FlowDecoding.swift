import Rules

/// A kind of files in `require`, and where it stands.
struct RequiredKind {
    var kind: Grouping.Kind
    var mark: Range<Int>
}

/// The keys that say when actions run, in which order, and together with what; nil for those that are not given.
struct FlowSettings {
    var tags: [String]?
    var priority: Int?
    var stop: Bool?
    var window: Switched<RunWindow>?

    var ready: Switched<Readiness>?
    var group: Template?
    var required: [RequiredKind]?
    var environment: [EnvironmentVariable]?
    var directory: Template?
    var isCaseSensitive: Bool?
    /// Where `group:` and `require:` have their values.
    var groupMark: Range<Int>?
    var requireMark: Range<Int>?
    /// Where the program of `ready: { command: … }` is.
    var readyCommandMark: Range<Int>?

    static let keys = ["tags", "priority", "stop", "window", "ready", "group", "require", "env", "directory", "case"]

    /// These settings, and those of the other where these say nothing.
    func over(_ other: FlowSettings) -> FlowSettings {
        var settings = self
        settings.tags = tags ?? other.tags
        settings.priority = priority ?? other.priority
        settings.stop = stop ?? other.stop
        settings.window = window ?? other.window
        settings.ready = ready ?? other.ready
        settings.group = group ?? other.group
        settings.required = required ?? other.required
        settings.environment = environment ?? other.environment
        settings.directory = directory ?? other.directory
        settings.isCaseSensitive = isCaseSensitive ?? other.isCaseSensitive
        settings.groupMark = groupMark ?? other.groupMark
        settings.requireMark = requireMark ?? other.requireMark
        settings.readyCommandMark = ready == nil ? other.readyCommandMark : readyCommandMark
        return settings
    }

    func apply(to rule: inout Rule) {
        rule.tags = tags ?? []
        rule.priority = priority ?? 0
        rule.isLast = stop ?? false
        rule.window = window?.value
        rule.ready = ready?.value
        if let group, let required { rule.group = Grouping(key: group, required: required.map(\.kind)) }
        rule.environment = environment ?? []
        rule.directory = directory
    }
}

extension RuleDecoder {
    func flow(from node: YAMLNode) -> FlowSettings {
        var settings = FlowSettings()
        settings.tags = node.entry("tags").flatMap { tags($0) }
        settings.priority = node.entry("priority").flatMap { integer($0, in: -1_000...1_000) }
        settings.stop = node.entry("stop").flatMap { bool($0) }
        settings.window = node.entry("window").flatMap { window($0) }
        settings.ready = node.entry("ready").flatMap { ready($0) }
        settings.readyCommandMark = node.entry("ready")?.value.entry("command").map { programMark($0) }
        settings.environment = node.entry("env").flatMap { environment($0) }
        settings.directory = node.entry("directory").flatMap { directory($0) }
        settings.isCaseSensitive = node.entry("case")
            .flatMap { word($0, of: ["sensitive", "insensitive"], noun: "choices") }.map { $0 == "sensitive" }
        if let entry = node.entry("group") {
            settings.group = group(entry)
            settings.groupMark = mark(entry)
        }
        if let entry = node.entry("require") {
            settings.required = required(entry)
            settings.requireMark = mark(entry)
        }
        return settings
    }

    /// Words of letters, digits, `-`, `_` and `.`, so that a shell needs no quotes for them.
    private func tags(_ entry: YAMLNode.Entry) -> [String]? {
        let nodes = entry.value.text == nil ? elements(entry, noun: "nightly", allowsEmpty: true) : [entry.value]
        return nodes?.compactMap { node in
            let range = entry.value.text == nil ? mark(node) : mark(entry)
            guard let tag = text(node, name: "a tag", at: range) else { return nil }
            let isPlain = tag.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                    || "-_.".utf8.contains(byte)
            }
            guard isPlain, (1...64).contains(tag.utf8.count), !tag.hasPrefix("-") else {
                problems.error(
                    "a tag can't be \(quoted(tag))", at: range,
                    help: "write a word of letters, digits, '-', '_' and '.', such as 'nightly'")
                return nil
            }
            return tag
        }
    }

    /// One text with hours, or several; `false` for always.
    private func window(_ entry: YAMLNode.Entry) -> Switched<RunWindow>? {
        if entry.value.isPlain, entry.value.text == "false" { return .off }
        let nodes: [YAMLNode]
        if let elements = entry.value.elements {
            guard !elements.isEmpty else {
                problems.error(
                    "'window' is empty", at: mark(entry), help: "write hours such as '22:00-06:00', or remove the key")
                return nil
            }
            nodes = elements
        } else {
            nodes = [entry.value]
        }
        let spans = nodes.compactMap { node -> RunWindow.Span? in
            let range = entry.value.elements == nil ? mark(entry) : mark(node)
            guard let text = text(node, name: "'window'", at: range, help: "write hours such as '22:00-06:00'") else {
                return nil
            }
            do throws(WindowProblem) {
                return try WindowText.parse(text)
            } catch {
                problems.error(error.message, at: range, help: error.help)
                return nil
            }
        }
        return spans.count == nodes.count ? .on(RunWindow(spans)) : nil
    }
}

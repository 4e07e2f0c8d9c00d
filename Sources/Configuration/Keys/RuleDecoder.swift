import FileEvents
import Globbing
import Rules
import System

/// Converts the tree of one rules file into rules and collects all diagnostics.
///
/// Nothing is thrown: a value that can't be read is reported and skipped, and a rule with an error is not returned.
struct RuleDecoder: NodeReading {
    let source: SourceText
    /// The absolute directory of the file.
    let directory: PathBytes
    let hostEnvironment: RuleLoader.Environment
    let catalog: CatalogCache
    let names: RuleNames
    let problems: DiagnosticCollector
    /// The offsets at which YAML errors left something out of the tree, in ascending order.
    let omissions: [Int]
    /// The `PATH` in which the programs of `exec` are searched for; nil if it differs from event to event.
    var searchPath: [UInt8]? = Array(Action.searchPath.utf8)
    /// The uses of regular expression groups in actions.
    let captures = CaptureLog()

    static let topKeys = ["rules", "defaults"]
    /// The keys of an action, which are sometimes written in the rule itself by mistake.
    static let actionKeys = ["use", "with", "exec", "shell", "shares_file"]

    /// Reads the whole file.
    func rules(from root: YAMLNode?) -> [DecodedRule] {
        let start = 0..<min(1, source.bytes.count)
        guard let root, !root.isNull else {
            if source.bytes.allSatisfy({ $0.isBlank || $0 == 0x0A || $0 == 0x0D }) {
                // A file is briefly empty while it is saved, and must not count as one without rules.
                problems.error("the file is empty", at: start, help: "start it with 'rules:', or remove it")
            } else {
                problems.warning("the file has no rules", at: start, help: "start them with 'rules:'")
            }
            return []
        }
        guard let entries = root.entries else {
            let isList = root.elements != nil
            return reject(
                "a rules file must be a mapping, not \(root.noun)", at: mark(root),
                help: isList ? "put 'rules:' above the list" : "start the file with 'rules:'") ?? []
        }
        checkKeys(entries, known: Self.topKeys, noun: "keys at the top of a file", misplaced: Self.keys.names) { _ in
            "it belongs to a rule, in the list under 'rules:'"
        }
        let errorsBefore = problems.errorCount
        let defaults = root.entry("defaults").map { self.defaults($0) } ?? []
        let isRefused = hostEnvironment.allowsUnsetVariables && problems.errorCount > errorsBefore
        guard let rules = root.entry("rules") else {
            let help = "add 'rules:' with a list of rules"
            return reject("there are no 'rules' in the file", at: mark(root), help: help) ?? []
        }
        let decoded = list(rules, defaults: defaults)
        return isRefused ? [] : decoded
    }

    private func list(_ entry: YAMLNode.Entry, defaults: [YAMLNode.Entry]) -> [DecodedRule] {
        if entry.value.isNull || entry.value.elements?.isEmpty == true {
            problems.warning("'rules' is empty", at: entry.key.range, help: "add a rule that starts with '- name:'")
            return []
        }
        guard let elements = entry.value.elements else {
            let help = entry.value.entries == nil ? "write a list of mappings" : "start each rule with '- '"
            return mistyped(entry, "a list", help: help) ?? []
        }
        return elements.compactMap { rule(from: $0, defaults: defaults) }
    }

    // MARK: - One rule

    private func rule(from node: YAMLNode, defaults: [YAMLNode.Entry]) -> DecodedRule? {
        let errorsBefore = problems.errorCount
        guard let entries = node.entries else {
            return reject(
                "a rule must be a mapping, not \(node.noun)", at: mark(node), help: "write 'path:' and 'action:' in it")
        }
        checkKeys(entries, known: Self.keys.names, noun: "keys of a rule", misplaced: Self.actionKeys) {
            "put it under 'action:', as in 'action: { \($0): … }'"
        }
        var draft = DecodedRule(
            entries: entries + defaults.filter { node.entry($0.name) == nil },
            location: source.location(at: node.range.lowerBound), baseDirectory: directory)
        let usesBefore = captures.uses.count
        let decoder = searching(by: draft["env"])
        Self.keys.read(draft.entries, by: decoder, into: &draft)
        let given = draft["name"]
        if let given { draft.rule.name = name(given) }
        let patterns = required("path", of: draft, at: node, help: "add 'path:' with a glob, such as ~/inbox/*.pdf")
            .map { self.patterns(from: $0, options: draft.globOptions) }
        let steps = required("action", of: draft, at: node, help: "add 'action:', such as 'action: log'")
            .map { decoder.steps(from: $0) }
        draft.steps = steps ?? []
        if given == nil, let patterns, !patterns.isEmpty { identify(&draft, by: patterns) }
        draft.formerly = draft["formerly"].map { formerly($0, name: draft.rule.name) } ?? []
        draft.completeFilter(patterns ?? [])
        draft.excludeTrash(hostEnvironment)
        let uses = captures.uses[usesBefore...]
        RuleChecks(decoder: self, draft: draft, patterns: patterns ?? [], captures: uses).run()
        guard problems.errorCount == errorsBefore, !hasOmission(node), patterns != nil, steps != nil else { return nil }
        draft.finish()
        return draft
    }

    /// Returns the decoder of a rule, or of `defaults`, with the `PATH` of its `env`.
    private func searching(by environment: YAMLNode.Entry?) -> RuleDecoder {
        guard let path = environment?.value.entry("PATH")?.value, let text = path.text, !path.isNull,
            let template = template(text, path, step: 0)
        else { return self }
        var decoder = self
        decoder.searchPath = template.literal
        return decoder
    }

    private func hasOmission(_ node: YAMLNode) -> Bool {
        !omissions.isEmpty && node.range.contains(omissions[omissions.lastIndex(notAbove: node.range.upperBound - 1)])
    }

    private func required(_ key: String, of draft: DecodedRule, at node: YAMLNode, help: String) -> YAMLNode.Entry? {
        draft[key] ?? reject("the rule has no '\(key)'", at: mark(node), help: help)
    }

    private func name(_ given: YAMLNode.Entry) -> String {
        guard let name = text(given) else { return "" }
        let range = given.value.range
        let isPrintable = name.unicodeScalars.allSatisfy {
            // The Unicode tables are needed only for characters beyond ASCII.
            $0.isASCII ? $0.value >= 0x20 && $0.value != 0x7F : $0.properties.generalCategory != .control
        }
        guard !name.isEmpty, isPrintable, name.utf8.count <= 200 else {
            problems.error(
                "invalid rule name \(quoted(name))", at: range,
                help: "write a short name on one line, such as 'thumbnails'")
            return name
        }
        if let other = names.claim(name, written: name, at: source.location(at: range.lowerBound)) {
            problems.error(
                "the name \(quoted(name)) is used by the rule at \(other)", at: range,
                help: "give each rule its own name")
        }
        return name
    }

    /// Names a rule without a name by its path.
    private func identify(_ draft: inout DecodedRule, by patterns: [PathPattern]) {
        let written = patterns.compactMap(\.node.text).joined(separator: ", ")
        // The order of a list does not matter.
        let path = patterns.map { String(decoding: $0.glob.pattern, as: UTF8.self) }.sorted().joined(separator: ", ")
        (draft.rule.name, draft.rule.identifyingPath) = (written, path)
        let range = patterns[0].node.range
        guard let other = names.claim(path, written: written, at: source.location(at: range.lowerBound)) else {
            return
        }
        let root = String(decoding: PathBytes(patterns[0].glob.root).lastComponent, as: UTF8.self)
        let examples = [draft.steps.first?.action.name ?? "log", "2"].map { "'\(root.isEmpty ? "all" : root)-\($0)'" }
        problems.error(
            "the path \(quoted(written)) is used by the rule at \(other), and a rule without a name is identified by its path",
            at: range, help: "give both rules a 'name', such as \(examples.joined(separator: " and "))")
    }

    /// Parses the former names of a rule.
    func formerly(_ entry: YAMLNode.Entry, name: String) -> [FormerName] {
        let help = "write a former name of the rule, or remove the key"
        let values = values(entry)
        if values.isEmpty { return reject("'formerly' is empty", at: mark(entry), help: help) ?? [] }
        var names: [FormerName] = []
        for (node, range) in values {
            guard let former = text(node, name: "a name in 'formerly'", at: range) else { continue }
            if former == name {
                problems.error(
                    "\(quoted(former)) is the current name of the rule", at: range, help: "write a former name")
            } else if names.contains(where: { $0.name == former }) {
                problems.error("\(quoted(former)) is listed twice", at: range, help: "remove it")
            } else {
                names.append(
                    FormerName(
                        name: former, range: range, problems: problems, location: source.location(at: range.lowerBound))
                )
            }
        }
        return names
    }

    // MARK: - Defaults

    /// Returns the entries of `defaults:`, which apply where a rule does not set the key; errors in them are
    /// reported.
    func defaults(_ entry: YAMLNode.Entry) -> [YAMLNode.Entry] {
        if entry.value.isNull { return [] }
        guard let entries = entry.value.entries else {
            return mistyped(entry, "a mapping", help: "write the keys that all rules of the file share under it") ?? []
        }
        let own = Self.keys.keys.filter { !$0.isShared }.map(\.name)
        checkKeys(entries, known: Self.sharedKeys.names, noun: "keys of 'defaults'", misplaced: own + Self.actionKeys) {
            "each rule has its own '\($0)'"
        }
        let shared = entries.filter { Self.sharedKeys[$0.name] != nil }
        // Possibly no rule uses an invalid value; if a rule also reports it, it is the same finding.
        var unused = DecodedRule()
        Self.keys.read(shared, by: searching(by: shared.first { $0.name == "env" }), into: &unused)
        return shared
    }

    // MARK: - Choices and mappings

    /// Adjusts a time and its maximum to each other: one that isn't set follows the other.
    func fit(
        _ time: inout Duration, _ name: String, _ longest: inout Duration, _ longestName: String, in node: YAMLNode
    ) {
        switch (node.entry(name), node.entry(longestName)) {
        case (_?, let entry?) where longest < time:
            problems.error(
                "'\(longestName)' is shorter than '\(name)'", at: mark(entry), help: "write a longer one, or remove it")
        case (_?, _?): break
        case (nil, _?): time = min(time, longest)
        default: longest = max(longest, time)
        }
    }

    func backend(_ entry: YAMLNode.Entry) -> Backend? {
        if entry.value.text == "fanotify" {
            return reject(
                "'backend' can't be 'fanotify': files are watched with inotify, which reports more",
                at: entry.value.range,
                help: "write 'auto', and 'by: true' to receive the process that wrote, which only fanotify reports")
        }
        return choice(entry)
    }

    // MARK: - Events and types

    func eventWords(_ entry: YAMLNode.Entry) -> [(node: YAMLNode, mask: EventMask)]? {
        list(entry, of: "an event", example: "created, modified") { text, node in
            if let mask = EventMask(word: text) { return (node, mask) }
            return reject("unknown event \(quoted(text))", at: node.range, help: EventSpelling.help(for: text))
        }
    }

    /// The words in `types:`.
    static let typeNames = ["file", "directory", "symlink", "any"]

    func typeWords(_ entry: YAMLNode.Entry) -> [(node: YAMLNode, types: Set<FileType>)]? {
        let known = Self.typeNames
        return list(entry, of: "a type", example: "file, directory") { text, node in
            if text == "any" { return (node, Set(FileType.allCases)) }
            if known.contains(text), let type = FileType(rawValue: text) { return (node, [type]) }
            let synonyms = [
                "files": "file", "dir": "directory", "folder": "directory", "link": "symlink", "all": "any",
            ]
            let list = "the types are \(known.joined(separator: ", "))"
            return reject(
                "unknown type \(quoted(text))", at: node.range,
                help: synonyms[text].map { "write '\($0)'; \(list)" }
                    ?? Spelling.help(for: text, candidates: known, noun: "types"))
        }
    }
}

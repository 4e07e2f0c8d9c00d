import FileEvents
import Globbing
import Rules
import Settling

/// The keys that a rule and `defaults` share; nil for those that are not given.
struct RuleSettings {
    var enabled: Bool?
    var exclude: [Glob]?
    var ignoreDefaults: Bool?
    var types: Set<FileType>?
    var hidden: Bool?
    var depth: Int?
    var events: EventMask?
    var settle: Duration?
    var writers: SettlePolicy.Gate?
    var timeout: Duration?
    var concurrency: Int?
    /// The words in `events:` and `types:`, to point at.
    var eventWords: [(node: YAMLNode, mask: EventMask)] = []
    var typeWords: [(node: YAMLNode, types: Set<FileType>)] = []

    static let keys = [
        "enabled", "exclude", "ignore_defaults", "types", "hidden", "depth", "events", "settle", "writers", "timeout",
        "concurrency",
    ]

    /// These settings, and those of the other where these say nothing.
    func over(_ other: RuleSettings) -> RuleSettings {
        RuleSettings(
            enabled: enabled ?? other.enabled, exclude: exclude ?? other.exclude,
            ignoreDefaults: ignoreDefaults ?? other.ignoreDefaults, types: types ?? other.types,
            hidden: hidden ?? other.hidden, depth: depth ?? other.depth, events: events ?? other.events,
            settle: settle ?? other.settle, writers: writers ?? other.writers, timeout: timeout ?? other.timeout,
            concurrency: concurrency ?? other.concurrency,
            eventWords: events == nil ? other.eventWords : eventWords,
            typeWords: types == nil ? other.typeWords : typeWords)
    }
}

extension RuleDecoder {
    /// The settings under `defaults:`.
    func defaults(_ entry: YAMLNode.Entry) -> RuleSettings {
        if entry.value.isNull { return RuleSettings() }
        guard let entries = entry.value.entries else {
            reportType(entry, "a mapping", help: "write the keys that all rules of the file share under it")
            return RuleSettings()
        }
        let own = Self.ruleKeys.filter { !RuleSettings.keys.contains($0) }
        checkKeys(entries, known: RuleSettings.keys, noun: "keys of 'defaults'", misplaced: own + Self.actionKeys) {
            "each rule has its own '\($0)'"
        }
        return settings(from: entry.value)
    }

    /// The shared keys of a rule or of `defaults`.
    func settings(from node: YAMLNode) -> RuleSettings {
        var settings = RuleSettings()
        settings.enabled = node.entry("enabled").flatMap { bool($0) }
        settings.exclude = node.entry("exclude").flatMap { exclude($0) }
        settings.ignoreDefaults = node.entry("ignore_defaults").flatMap { bool($0) }
        settings.hidden = node.entry("hidden").flatMap { bool($0) }
        settings.depth = node.entry("depth").flatMap { integer($0, in: 0...1_000) }
        settings.settle = node.entry("settle").flatMap { duration($0, allowsZero: true) }
        settings.timeout = node.entry("timeout").flatMap { duration($0, allowsZero: false) }
        settings.concurrency = node.entry("concurrency").flatMap { integer($0, in: 1...1_024) }
        settings.writers = node.entry("writers")
            .flatMap { word($0, of: SettlePolicy.Gate.allCases.map(\.rawValue), noun: "choices") }
            .flatMap { SettlePolicy.Gate(rawValue: $0) }
        if let entry = node.entry("types") {
            settings.typeWords = typeWords(entry)
            if !settings.typeWords.isEmpty {
                settings.types = settings.typeWords.reduce(into: []) { $0.formUnion($1.types) }
            }
        }
        if let entry = node.entry("events") {
            settings.eventWords = eventWords(entry)
            if !settings.eventWords.isEmpty {
                settings.events = settings.eventWords.reduce(into: []) { $0.formUnion($1.mask) }
            }
        }
        return settings
    }

    // MARK: - Events and types

    private func eventWords(_ entry: YAMLNode.Entry) -> [(node: YAMLNode, mask: EventMask)] {
        let elements = elements(entry, noun: "created, modified") ?? []
        return elements.compactMap { node in
            guard let text = text(node, name: "an event", at: mark(node)) else { return nil }
            if let mask = EventMask(word: text) { return (node, mask) }
            problems.error("unknown event \(quoted(text))", at: node.range, help: eventHelp(for: text))
            return nil
        }
    }

    private func eventHelp(for word: String) -> String? {
        let list = "the events are \(EventMask.words.joined(separator: ", "))"
        if let meant = Self.eventSynonyms[word.lowercased()] { return "write '\(meant)'; \(list)" }
        if word.uppercased().hasPrefix("IN_") {
            let known = Self.inotifyWords.first { $0 == word.uppercased() }
            return known.map { "write '\($0)'; \(list)" } ?? list
        }
        return Spelling.help(for: word, candidates: EventMask.words, noun: "events")
    }

    /// Words of other programs, and what they mean here.
    private static let eventSynonyms: [String: String] = [
        "add": "created", "added": "created", "create": "created", "new": "created", "change": "modified",
        "changed": "modified", "changes": "modified", "close_write": "modified", "edit": "modified",
        "modify": "modified", "update": "modified", "updated": "modified", "write": "modified", "written": "modified",
        "delete": "deleted", "remove": "deleted", "removed": "deleted", "unlink": "deleted", "move": "moved",
        "rename": "moved", "renamed": "moved", "attrib": "attributes", "chmod": "attributes", "metadata": "attributes",
    ]

    private static let inotifyWords = [
        "IN_CREATE", "IN_CLOSE_WRITE", "IN_MODIFY", "IN_DELETE", "IN_MOVED_TO", "IN_MOVED_FROM", "IN_MOVE", "IN_ATTRIB",
    ]

    private func typeWords(_ entry: YAMLNode.Entry) -> [(node: YAMLNode, types: Set<FileType>)] {
        let known = ["file", "directory", "symlink", "any"]
        let elements = elements(entry, noun: "file, directory") ?? []
        return elements.compactMap { node in
            guard let text = text(node, name: "a type", at: mark(node)) else { return nil }
            if text == "any" { return (node, Set(FileType.allCases)) }
            if known.contains(text), let type = FileType(rawValue: text) { return (node, [type]) }
            let synonyms = [
                "files": "file", "dir": "directory", "folder": "directory", "link": "symlink", "all": "any",
            ]
            let list = "the types are \(known.joined(separator: ", "))"
            problems.error(
                "unknown type \(quoted(text))", at: node.range,
                help: synonyms[text].map { "write '\($0)'; \(list)" }
                    ?? Spelling.help(for: text, candidates: known, noun: "types"))
            return nil
        }
    }

    // MARK: - What a handler takes

    /// Tells of events and types that the rule asks for and the handler does not take.
    func checkLimits(of step: DecodedStep, events: EventMask, types: Set<FileType>, settings: RuleSettings) {
        guard let handler = step.handler, let mark = step.handlerMark else { return }
        let name = quoted(handler.reference.name)
        if let taken = handler.events {
            let excess = events.subtracting(taken)
            if !excess.isEmpty {
                let word = settings.eventWords.first { !$0.mask.isDisjoint(with: excess) }
                let list = taken.kinds.map(\.rawValue).joined(separator: ", ")
                let nouns = excess.kinds.map { "'\($0.rawValue)'" }.joined(separator: ", ")
                problems.error(
                    "\(name) doesn't take \(excess.kinds.count == 1 ? "the event" : "the events") \(nouns)",
                    at: word.map { self.mark($0.node) } ?? mark,
                    help: word == nil ? "write 'events: [\(list)]'" : "it takes \(list)")
            }
        }
        if let taken = handler.types {
            let excess = FileType.allCases.filter { types.contains($0) && !taken.contains($0) }
            if !excess.isEmpty {
                let word = settings.typeWords.first { !$0.types.isDisjoint(with: excess) }
                let list = FileType.allCases.filter(taken.contains).map(\.rawValue).joined(separator: ", ")
                let nouns = excess.map { "'\($0.rawValue)'" }.joined(separator: ", ")
                problems.error(
                    "\(name) doesn't take \(excess.count == 1 ? "the type" : "the types") \(nouns)",
                    at: word.map { self.mark($0.node) } ?? mark,
                    help: word == nil ? "write 'types: [\(list)]'" : "it takes \(list)")
            }
        }
    }
}

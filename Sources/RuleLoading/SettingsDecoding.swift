import FileEvents
import FileWatching
import Globbing
import Rules
import Settling

/// Something that can be off, or on in some way.
enum Switched<Value> {
    case off
    case on(Value)

    var value: Value? {
        guard case .on(let value) = self else { return nil }
        return value
    }
}

/// The keys that a rule and `defaults` share; nil for those that are not given.
struct RuleSettings {
    var enabled: Bool?
    var exclude: [Glob]?
    var outputs: [Glob]?
    var ignoreDefaults: Bool?
    var types: Set<FileType>?
    var tree: Bool?
    var hidden: Bool?
    var depth: Int?
    var events: EventMask?
    var settle: Duration?
    var stable: SettlePolicy.Rounds?
    var writers: SettlePolicy.Gate?
    var locks: SettlePolicy.Gate?
    var whenHeld: Duration?
    var ignorePartial: Bool?
    var maximumWait: Duration?
    var existing: Rule.Existing?
    var missing: Rule.Missing?
    var sameContent: Rule.Telling?
    var ownWrites: Rule.Telling?
    var tail: Switched<Rule.Tail>?
    var batch: Switched<Rule.Batch>?
    var backend: Backend?
    var poll: Duration?
    var catchUp: Bool?
    var timeout: Duration?
    var concurrency: Int?
    var retry: RetryPolicy?
    var whileBusy: Rule.WhileBusy?
    var cooldown: Duration?
    var onFailure: [DecodedStep]?
    var condition: Condition?
    /// Whether `where` was given and could not be read, which has been told.
    var hasFaultyCondition = false
    /// What `on_failure` asks of the groups of regular expressions.
    var failureCaptures: [CaptureUse] = []
    var flow = FlowSettings()
    var confinement = ConfinementSettings()
    var allowLoop: Bool?
    var tellsAuthor: Bool?
    /// The words in `events:` and `types:`, to point at.
    var eventWords: [(node: YAMLNode, mask: EventMask)] = []
    var typeWords: [(node: YAMLNode, types: Set<FileType>)] = []
    /// Where `tree:`, `tail:` and `while_busy:` have their values.
    var treeMark: Range<Int>?
    var tailMark: Range<Int>?
    var busyMark: Range<Int>?

    static let keys =
        [
            "enabled", "exclude", "outputs", "ignore_defaults", "types", "tree", "hidden", "depth", "events", "settle",
            "stable", "writers", "locks", "when_held", "ignore_partial", "max_wait", "existing", "missing",
            "same_content", "own_writes", "tail", "batch",
            "backend", "poll", "catch_up", "timeout", "concurrency", "retry", "while_busy", "cooldown", "on_failure",
            "where", "by", "allow_loop",
        ] + FlowSettings.keys + ConfinementSettings.keys

    /// These settings, and those of the other where these say nothing.
    func over(_ other: RuleSettings) -> RuleSettings {
        RuleSettings(
            enabled: enabled ?? other.enabled, exclude: exclude ?? other.exclude, outputs: outputs ?? other.outputs,
            ignoreDefaults: ignoreDefaults ?? other.ignoreDefaults, types: types ?? other.types,
            tree: tree ?? other.tree, hidden: hidden ?? other.hidden, depth: depth ?? other.depth,
            events: events ?? other.events, settle: settle ?? other.settle, stable: stable ?? other.stable,
            writers: writers ?? other.writers, locks: locks ?? other.locks,
            whenHeld: whenHeld ?? other.whenHeld, ignorePartial: ignorePartial ?? other.ignorePartial,
            maximumWait: maximumWait ?? other.maximumWait, existing: existing ?? other.existing,
            missing: missing ?? other.missing, sameContent: sameContent ?? other.sameContent,
            ownWrites: ownWrites ?? other.ownWrites, tail: tail ?? other.tail, batch: batch ?? other.batch,
            backend: backend ?? other.backend, poll: poll ?? other.poll, catchUp: catchUp ?? other.catchUp,
            timeout: timeout ?? other.timeout, concurrency: concurrency ?? other.concurrency,
            retry: retry ?? other.retry, whileBusy: whileBusy ?? other.whileBusy,
            cooldown: cooldown ?? other.cooldown, onFailure: onFailure ?? other.onFailure,
            condition: condition ?? (hasFaultyCondition ? nil : other.condition),
            hasFaultyCondition: hasFaultyCondition || (condition == nil && other.hasFaultyCondition),
            failureCaptures: onFailure == nil ? other.failureCaptures : failureCaptures,
            flow: flow.over(other.flow), confinement: confinement.over(other.confinement),
            allowLoop: allowLoop ?? other.allowLoop, tellsAuthor: tellsAuthor ?? other.tellsAuthor,
            eventWords: events == nil ? other.eventWords : eventWords,
            typeWords: types == nil ? other.typeWords : typeWords,
            treeMark: tree == nil ? other.treeMark : treeMark, tailMark: tail == nil ? other.tailMark : tailMark,
            busyMark: whileBusy == nil ? other.busyMark : busyMark)
    }

    /// When a path counts as finished.
    ///
    /// What is followed is told as it grows: by a process that keeps it open, and
    /// at least as often as it would be if it rested.
    var policy: SettlePolicy {
        var policy = SettlePolicy(
            quiet: settle, stable: stable, writers: writers ?? .wait, locks: locks ?? .ignore,
            partial: ignorePartial == false ? .ignore : .wait, whenHeld: whenHeld,
            maximumWait: maximumWait, isTree: tree ?? false)
        if tail?.value != nil {
            policy.writers = writers ?? .ignore
            policy.partial = ignorePartial == true ? .wait : .ignore
            policy.maximumWait = maximumWait ?? max(policy.quiet(isPolled: backend == .poll), .seconds(1))
        }
        return policy
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
        settings.exclude = node.entry("exclude").flatMap { relativeGlobs($0) }
        settings.outputs = node.entry("outputs").flatMap { relativeGlobs($0) }
        settings.ignoreDefaults = node.entry("ignore_defaults").flatMap { bool($0) }
        settings.hidden = node.entry("hidden").flatMap { bool($0) }
        settings.depth = node.entry("depth").flatMap { integer($0, in: 0...1_000) }
        settings.settle = node.entry("settle").flatMap { duration($0, allowsZero: true) }
        settings.stable = node.entry("stable").flatMap { stable($0) }
        settings.writers = node.entry("writers").flatMap { choice($0) }
        settings.locks = node.entry("locks").flatMap { choice($0) }
        settings.whenHeld = node.entry("when_held").flatMap { duration($0) }
        settings.ignorePartial = node.entry("ignore_partial").flatMap { bool($0) }
        settings.maximumWait = node.entry("max_wait").flatMap { duration($0) }
        settings.existing = node.entry("existing").flatMap { choice($0) }
        settings.missing = node.entry("missing").flatMap { choice($0) }
        settings.sameContent = node.entry("same_content").flatMap { choice($0) }
        settings.ownWrites = node.entry("own_writes").flatMap { choice($0) }
        settings.batch = node.entry("batch").flatMap { batch($0) }
        settings.backend = node.entry("backend").flatMap { backend($0) }
        settings.poll = node.entry("poll").flatMap { duration($0, atLeast: (.milliseconds(100), "100ms")) }
        settings.timeout = node.entry("timeout").flatMap { duration($0) }
        settings.catchUp = node.entry("catch_up").flatMap { bool($0) }
        settings.concurrency = node.entry("concurrency").flatMap { integer($0, in: 1...1_024) }
        settings.retry = node.entry("retry").flatMap { retry($0) }
        settings.cooldown = node.entry("cooldown").flatMap { duration($0, allowsZero: true) }
        (settings.onFailure, settings.failureCaptures) = captures.noted {
            node.entry("on_failure").map { steps(from: $0) }
        }
        if let entry = node.entry("where") {
            settings.condition = condition(entry)
            settings.hasFaultyCondition = settings.condition == nil
        }
        settings.flow = flow(from: node)
        settings.confinement = confinement(from: node)
        settings.allowLoop = node.entry("allow_loop").flatMap { bool($0) }
        settings.tellsAuthor = node.entry("by").flatMap { bool($0) }
        if let entry = node.entry("while_busy") {
            settings.whileBusy = choice(entry)
            settings.busyMark = mark(entry)
        }
        if let entry = node.entry("tree") {
            settings.tree = bool(entry)
            settings.treeMark = mark(entry)
        }
        if let entry = node.entry("tail") {
            settings.tail = tail(entry)
            settings.tailMark = mark(entry)
        }
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

    // MARK: - Choices and mappings

    private func stable(_ entry: YAMLNode.Entry) -> SettlePolicy.Rounds? {
        mapping(entry, keys: ["every", "rounds"]) { node in
            var rounds = SettlePolicy.Rounds()
            if let every = node.entry("every").flatMap({ duration($0) }) { rounds.every = every }
            if let count = node.entry("rounds").flatMap({ integer($0, in: 1...1_000) }) { rounds.rounds = count }
            return rounds
        }
    }

    private func tail(_ entry: YAMLNode.Entry) -> Switched<Rule.Tail>? {
        switched(entry, plain: Rule.Tail(), keys: ["max_bytes"]) { node in
            let bound = node.entry("max_bytes").flatMap {
                size($0, in: 1_000...16_000_000, shown: "from 1 KB to 16 MB")
            }
            return bound.map { Rule.Tail(maximumBytes: $0) } ?? Rule.Tail()
        }
    }

    private func batch(_ entry: YAMLNode.Entry) -> Switched<Rule.Batch>? {
        switched(entry, plain: Rule.Batch(), keys: ["files", "wait", "max_wait"]) { node in
            var batch = Rule.Batch()
            if let files = node.entry("files").flatMap({ integer($0, in: 1...100_000) }) { batch.files = files }
            let wait = node.entry("wait").flatMap { duration($0, allowsZero: true) }
            let longest = node.entry("max_wait").flatMap { duration($0) }
            if let wait, let longest, longest < wait, let entry = node.entry("max_wait") {
                problems.error(
                    "'max_wait' is shorter than 'wait'", at: mark(entry), help: "write a longer one, or remove it")
            }
            batch.wait = wait ?? min(batch.wait, longest ?? batch.wait)
            batch.maximumWait = longest ?? max(batch.maximumWait, batch.wait)
            return batch
        }
    }

    private func backend(_ entry: YAMLNode.Entry) -> Backend? {
        if entry.value.text == "fanotify" {
            problems.error(
                "'backend' can't be 'fanotify': files are watched by inotify, which sees more", at: entry.value.range,
                help: "write 'auto'; for what fanotify alone tells, who wrote, write 'by: true' beside it")
            return nil
        }
        return choice(entry)
    }

    /// Tells of keys that only go with certain types.
    func checkTypes(_ types: Set<FileType>, settings: RuleSettings) {
        if settings.tree == true, types != [.directory], let mark = settings.treeMark {
            problems.error(
                "'tree' handles a directory with all that is in it, and needs the type 'directory' alone", at: mark,
                help: "write 'types: [directory]', or remove 'tree'")
        }
        if settings.tail?.value != nil, types != [.file], let mark = settings.tailMark {
            problems.error(
                "'tail' follows the text of a file, and needs the type 'file' alone", at: mark,
                help: "write 'types: [file]', or remove 'tail'")
        }
    }

    // MARK: - Events and types

    private func eventWords(_ entry: YAMLNode.Entry) -> [(node: YAMLNode, mask: EventMask)] {
        let elements = elements(entry, noun: "created, modified") ?? []
        return elements.compactMap { node in
            guard let text = text(node, name: "an event", at: mark(node)) else { return nil }
            if let mask = EventMask(word: text) { return (node, mask) }
            problems.error("unknown event \(quoted(text))", at: node.range, help: EventSpelling.help(for: text))
            return nil
        }
    }

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
}

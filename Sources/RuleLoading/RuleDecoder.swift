import FileEvents
import FileWatching
import Globbing
import PluginProtocol
import Rules
import Settling

/// A rule as it was read, and whether it is to run.
struct DecodedRule {
    var rule: Rule
    var isEnabled: Bool
    var formerly: [FormerName] = []
    /// Where its actions write, as far as that is declared.
    var destinations: [Destination] = []
    var allowsLoop = false
    /// The first of its actions after which the file is not at its path.
    var removal: Removal?
}

/// Turns the tree of one rules file into rules, and tells all that is wrong with it.
///
/// Nothing is thrown: a value that can't be read is told of and left out, and a
/// rule with an error is not returned. Split by subject over several files.
struct RuleDecoder: NodeReading {
    let source: SourceText
    /// The absolute folder of the file.
    let folder: PathBytes
    /// The name of the file without its extension, of which the names of unnamed rules are made.
    let stem: String
    let surroundings: RuleLoader.Surroundings
    let catalog: CatalogCache
    let names: RuleNames
    let problems: DiagnosticCollector
    /// Where the tree leaves something out, because YAML itself is wrong there; in rising order.
    let faults: [Int]
    /// What actions ask of the groups of regular expressions.
    let captures = CaptureLog()

    static let topKeys = ["rules", "defaults"]
    static let ruleKeys =
        [
            "name", "description", "enabled", "path", "exclude", "outputs", "ignore_defaults", "types", "tree",
            "hidden", "depth", "events", "settle", "stable", "writers", "locks", "when_held", "ignore_partial",
            "max_wait", "existing", "missing", "same_content", "own_writes", "tail", "batch", "backend", "poll",
            "catch_up", "formerly", "action", "timeout", "concurrency", "retry", "while_busy", "cooldown",
            "on_failure", "where", "by", "allow_loop",
        ] + FlowSettings.keys + ConfinementSettings.keys
    /// The keys of an action, which some put into the rule itself.
    static let actionKeys = ["use", "with", "exec", "shell"]

    /// Reads the whole file.
    func rules(from root: YAMLNode?) -> [DecodedRule] {
        let start = 0..<min(1, source.bytes.count)
        guard let root, !root.isNull else {
            if source.bytes.allSatisfy({ $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }) {
                // A file that is being saved is empty for a moment, and must not count as one without rules.
                problems.error(
                    "the file is empty", at: start, help: "start it with 'rules:', or remove it")
            } else {
                problems.warning("the file has no rules", at: start, help: "start them with 'rules:'")
            }
            return []
        }
        guard let entries = root.entries else {
            let isList = root.elements != nil
            problems.error(
                "a rules file must be a mapping, not \(root.noun)", at: mark(root),
                help: isList ? "put 'rules:' above the list" : "start the file with 'rules:'")
            return []
        }
        checkKeys(entries, known: Self.topKeys, noun: "keys at the top of a file", misplaced: Self.ruleKeys) {
            _ in "it belongs to a rule, in the list under 'rules:'"
        }
        let errorsBefore = problems.errorCount
        let defaults = root.entry("defaults").map { self.defaults($0) } ?? RuleSettings()
        let isRefused = surroundings.allowsUnsetVariables && problems.errorCount > errorsBefore
        guard let rules = root.entry("rules") else {
            problems.error(
                "there are no 'rules' in the file", at: mark(root), help: "add 'rules:' with a list of rules")
            return []
        }
        let decoded = list(rules, defaults: defaults)
        return isRefused ? [] : decoded
    }

    private func list(_ entry: YAMLNode.Entry, defaults: RuleSettings) -> [DecodedRule] {
        if entry.value.isNull || entry.value.elements?.isEmpty == true {
            problems.warning("'rules' is empty", at: entry.key.range, help: "add a rule that starts with '- name:'")
            return []
        }
        guard let elements = entry.value.elements else {
            let help = entry.value.entries == nil ? "write a list of mappings" : "start each rule with '- '"
            reportType(entry, "a list", help: help)
            return []
        }
        return elements.enumerated().compactMap { index, element in
            rule(from: element, number: index + 1, defaults: defaults)
        }
    }

    // MARK: - One rule

    private func rule(from node: YAMLNode, number: Int, defaults: RuleSettings) -> DecodedRule? {
        let errorsBefore = problems.errorCount
        guard let entries = node.entries else {
            problems.error(
                "a rule must be a mapping, not \(node.noun)", at: mark(node), help: "write 'path:' and 'action:' in it")
            return nil
        }
        checkKeys(entries, known: Self.ruleKeys, noun: "keys of a rule", misplaced: Self.actionKeys) {
            "put it under 'action:', as in 'action: { \($0): … }'"
        }
        let place = source.place(at: node.range.lowerBound)
        let name = name(of: node, number: number)
        let summary = node.entry("description").flatMap { text($0) }
        let settings = settings(from: node).over(defaults)
        let isHidden = settings.hidden ?? false
        let types = settings.types ?? [.file]
        let events = settings.events ?? [.created, .modified]
        let patterns = required("path", in: node, help: "add 'path:' with a glob, such as ~/inbox/*.pdf").map {
            self.patterns(
                from: $0, matchesHidden: isHidden, isCaseSensitive: settings.flow.isCaseSensitive ?? false)
        }
        let (steps, captureUses) = captures.noted {
            required("action", in: node, help: "add 'action:', such as 'action: log'").map { self.steps(from: $0) }
        }
        for step in steps ?? [] { checkLimits(of: step, events: events, types: types, settings: settings) }
        for step in settings.onFailure ?? [] {
            checkLimits(of: step, events: events, types: types, settings: settings, onFailure: true)
        }
        checkCommands((steps ?? []) + (settings.onFailure ?? []), settings: settings)
        checkTypes(types, settings: settings)
        if !settings.hasFaultyCondition {
            let uses = captureUses + settings.failureCaptures + settings.confinement.captures
            checkCaptures(uses, condition: settings.condition)
        }
        checkWhileBusy(settings)
        checkConfinement(settings.confinement)
        checkGroup(settings, events: events)
        let formerly = node.entry("formerly").map { self.formerly($0, name: name) } ?? []
        let filter = PathFilter(
            globs: (patterns ?? []).map(\.glob),
            exclude: GlobSet((settings.exclude ?? []) + [settings.flow.ready?.value?.markers].compactMap(\.self)),
            ignores: settings.ignoreDefaults ?? true ? DefaultIgnores.globs : GlobSet([]),
            outputs: GlobSet(settings.outputs ?? []), depth: settings.depth, isTree: settings.tree ?? false)
        for pattern in patterns ?? [] { checkReach(of: pattern, filter: filter, types: types, settings: settings) }
        checkKinds(settings.flow, patterns: patterns ?? [], filter: filter)
        guard problems.errorCount == errorsBefore, !hasFault(node), patterns != nil, let steps else { return nil }
        var rule = Rule(
            name: name, place: place, folder: folder, summary: summary,
            filter: filter, types: types, events: events, settle: settings.policy,
            existing: settings.existing ?? .ignore, missing: settings.missing ?? .wait,
            sameContent: settings.sameContent ?? .report, ownWrites: settings.ownWrites ?? .ignore,
            tail: settings.tail?.value, batch: settings.batch?.value, backend: settings.backend ?? .auto,
            pollInterval: settings.poll ?? .seconds(10),
            actions: steps.map(\.action), timeout: settings.timeout ?? .seconds(600),
            concurrency: settings.concurrency ?? 1, retry: settings.retry ?? RetryPolicy())
        rule.whileBusy = settings.whileBusy ?? .coalesce
        rule.cooldown = settings.cooldown ?? .zero
        rule.onFailure = settings.onFailure?.map(\.action) ?? []
        rule.catchUp = settings.catchUp ?? true
        rule.condition = settings.condition
        rule.tellsAuthor = settings.tellsAuthor ?? false
        rule.formerly = formerly.map(\.name)
        settings.flow.apply(to: &rule)
        rule.confinement = settings.confinement.confinement
        var decoded = DecodedRule(rule: rule, isEnabled: settings.enabled ?? true, formerly: formerly)
        decoded.destinations = steps.flatMap(\.destinations)
        decoded.destinations += (settings.onFailure ?? []).flatMap(\.destinations).map { $0.afterFailure }
        decoded.allowsLoop = settings.allowLoop ?? false
        decoded.removal = steps.lazy.compactMap(\.removal).first
        return decoded
    }

    private func hasFault(_ node: YAMLNode) -> Bool {
        var low = 0
        var high = faults.count
        while low < high {
            let middle = (low + high) / 2
            if faults[middle] < node.range.lowerBound { low = middle + 1 } else { high = middle }
        }
        return low < faults.count && faults[low] < node.range.upperBound
    }

    private func required(_ key: String, in node: YAMLNode, help: String) -> YAMLNode.Entry? {
        if let entry = node.entry(key) { return entry }
        problems.error("the rule has no '\(key)'", at: mark(node), help: help)
        return nil
    }

    private func name(of node: YAMLNode, number: Int) -> String {
        let given = node.entry("name")
        let name = given.flatMap { text($0) } ?? "\(stem)-\(number)"
        let range = given?.value.range ?? mark(node)
        let isPrintable = name.unicodeScalars.allSatisfy {
            // The table of all characters is asked only for those beyond ASCII.
            $0.isASCII ? $0.value >= 0x20 && $0.value != 0x7F : $0.properties.generalCategory != .control
        }
        guard !name.isEmpty, isPrintable, name.utf8.count <= 200 else {
            problems.error(
                "a rule can't have the name \(quoted(name))", at: range,
                help: "write a short name of one line, such as 'thumbnails'")
            return name
        }
        if let other = names.claim(name, at: source.place(at: range.lowerBound)) {
            let help =
                given == nil
                ? "give this rule a 'name'; without one it has that of its file and its number"
                : "give each rule its own name"
            problems.error("the name \(quoted(name)) belongs to the rule at \(other)", at: range, help: help)
        }
        return name
    }
}

/// The names that rules have taken, over all files.
final class RuleNames {
    private var places: [String: SourcePlace] = [:]

    var claimed: Set<String> { Set(places.keys) }

    /// Takes a name; returns where the rule is that has it already.
    func claim(_ name: String, at place: SourcePlace) -> SourcePlace? {
        if let other = places[name] { return other }
        places[name] = place
        return nil
    }
}

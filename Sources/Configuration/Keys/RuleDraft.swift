import FileEvents
import FileWatching
import Globbing
import Rules
import Settling
import System

/// A rule while it is read: what its keys say as it stands, and what is put together from several of them.
struct RuleDraft {
    var rule: Rule
    var isEnabled = true
    var allowsLoop = false
    // What the path filter is made of, besides the globs of `path`.
    var exclude: [Glob] = []
    var outputs: [Glob] = []
    var ignoresDefaults = true
    var depth: Int?
    var matchesHidden = false
    var isCaseSensitive = false
    // Values that are read when others are known.
    var name: YAMLNode.Entry?
    var path: YAMLNode.Entry?
    var action: YAMLNode.Entry?
    var formerly: YAMLNode.Entry?
    var steps: [DecodedStep] = []
    var onFailure: [DecodedStep] = []
    var group: Template?
    var required: [RequiredKind] = []
    /// The words in `events:` and `types:`, to point at.
    var eventWords: [(node: YAMLNode, mask: EventMask)] = []
    var typeWords: [(node: YAMLNode, types: Set<FileType>)] = []
    /// The rule's own entries, and those of `defaults` that it hasn't.
    let entries: [YAMLNode.Entry]

    init(_ rule: Rule, _ node: YAMLNode, over defaults: [YAMLNode.Entry]) {
        self.rule = rule
        let own = node.entries ?? []
        entries = own + defaults.filter { node.entry($0.name) == nil }
    }

    /// The entry of a key, of the rule or of `defaults`; to point at, and to ask whether the key is given.
    subscript(key: String) -> YAMLNode.Entry? { entries.first { $0.name == key } }

    /// Whether `run_as` could not be read, which has been told.
    var hasFaultyUser: Bool { rule.confinement.user == nil && self["run_as"].map { !$0.value.isOff } == true }

    func filter(_ patterns: [PathPattern]) -> PathFilter {
        PathFilter(
            globs: patterns.map(\.glob),
            exclude: GlobSet(exclude + [rule.ready?.markers].compactMap(\.self)),
            ignores: ignoresDefaults ? DefaultIgnores.globs : GlobSet([]),
            outputs: GlobSet(outputs), depth: depth, isTree: rule.settle.isTree)
    }

    /// The rule with all that goes into it.
    ///
    /// What is followed by `tail` is told as it grows: by a process that keeps it open, and at least as often as it would
    /// be if it rested.
    var finished: Rule {
        var rule = rule
        rule.actions = steps.map(\.action)
        rule.onFailure = onFailure.map(\.action)
        if let group, !required.isEmpty { rule.group = Grouping(key: group, required: required.map(\.kind)) }
        guard rule.tail != nil else { return rule }
        if self["writers"] == nil { rule.settle.writers = .ignore }
        if self["ignore_partial"] == nil { rule.settle.partial = .ignore }
        if self["max_wait"] == nil {
            rule.settle.maximumWait = max(rule.settle.quiet(isPolled: rule.backend == .poll), .seconds(1))
        }
        return rule
    }
}

import FileEvents
import Globbing
import Rules
import System

/// A decoded rule: the values of its keys, the parts that depend on several keys, and what to compare with other rules.
struct DecodedRule {
    var rule: Rule
    var isEnabled = true
    var allowsLoop = false
    var formerly: [FormerName] = []
    /// The options for the globs of `path`.
    var globOptions = Glob.Options()
    var exclude: [Glob] = []
    var outputs: [Glob] = []
    var ignoresDefaults = true
    var steps: [DecodedStep] = []
    var onFailure: [DecodedStep] = []
    var group: Template?
    /// The kinds of files in `require`, and their ranges in the source.
    var required: [(kind: Grouping.Kind, mark: Range<Int>)] = []
    /// The words in `events:` and `types:`, for the locations of diagnostics.
    var eventWords: [(node: YAMLNode, mask: EventMask)] = []
    var typeWords: [(node: YAMLNode, types: Set<FileType>)] = []
    /// The rule's own entries, and those of `defaults` that it does not override.
    let entries: [YAMLNode.Entry]

    /// Creates a rule of which no key has been read.
    init(
        entries: [YAMLNode.Entry] = [], location: SourcePosition = SourcePosition(file: "", line: 0, column: 0),
        baseDirectory: PathBytes = "/"
    ) {
        rule = Rule(name: "", location: location, baseDirectory: baseDirectory)
        self.entries = entries
    }

    /// The entry of a key, from the rule or from `defaults`; nil if the key is not set.
    subscript(key: String) -> YAMLNode.Entry? { entries.first { $0.name == key } }

    /// Whether `run_as` could not be read; this has been reported.
    var hasInvalidUser: Bool { rule.confinement.user == nil && self["run_as"].map { !$0.value.isOff } == true }

    /// Completes the path filter with the globs of `path`.
    mutating func completeFilter(_ patterns: [PathPattern]) {
        rule.filter = PathFilter(
            globs: patterns.map(\.glob), exclude: GlobSet(exclude + [rule.ready?.markers].compactMap(\.self)),
            ignores: !ignoresDefaults
                ? GlobSet([]) : rule.tail == nil ? DefaultIgnores.globs : DefaultIgnores.followingGlobs,
            outputs: GlobSet(outputs),
            depth: rule.filter.depth, isTree: rule.settle.isTree)
    }

    /// The destinations of its actions, as far as they are declared.
    var destinations: [Destination] {
        steps.flatMap(\.destinations)
            + onFailure.flatMap(\.destinations).map { destination in
                var destination = destination
                destination.isOfFailure = true
                return destination
            }
    }

    /// The first of its actions that removes the file from its path.
    var removal: Removal? { steps.lazy.compactMap(\.removal).first }

    /// Completes the rule.
    ///
    /// A file followed by `tail` is reported while it grows: even if a process has it open, and at least as often as
    /// it would be if it settled.
    mutating func finish() {
        rule.formerly = formerly.map(\.name)
        rule.actions = steps.map(\.action)
        rule.onFailure = onFailure.map(\.action)
        if self["timeout"] == nil {
            // One limit for all steps.
            let standard = rule.timeout
            rule.timeout = steps.map { $0.handler?.timeout ?? standard }.max() ?? standard
            rule.timeout = max(rule.timeout, onFailure.compactMap { $0.handler?.timeout }.max() ?? .zero)
        }
        if let group, !required.isEmpty { rule.group = Grouping(key: group, required: required.map(\.kind)) }
        guard rule.tail != nil else { return }
        if self["writers"] == nil { rule.settle.writers = .ignore }
        if self["ignore_partial"] == nil { rule.settle.partial = .ignore }
        if self["max_wait"] == nil {
            rule.settle.maximumWait = max(rule.settle.quiet(isPolled: rule.backend == .poll), .seconds(1))
        }
    }
}

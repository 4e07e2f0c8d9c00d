package import FileEvents
package import Globbing
package import System

/// A rule: one validated entry of a rules file, which runs actions for matching files.
package struct Rule: Sendable {
    /// The handling of files that exist when a rule starts for the first time.
    package enum Existing: String, Sendable, Hashable, CaseIterable {
        case ignore, process
    }

    /// Whether a possible event is reported.
    package enum Reporting: String, Sendable, Hashable, CaseIterable {
        case report, ignore
    }

    /// The settings for following a growing file.
    package struct Tail: Sendable, Hashable {
        /// Whether an event has whole lines.
        package var hasLines = true
        /// The time after which a line without an end is delivered.
        package var maximumWait = Duration.seconds(60)
        /// The maximum number of bytes in one event; the rest follows.
        package var maximumBytes = 65_536

        package init() {}
    }

    /// The settings for handling several events in one run of the action.
    package struct Batch: Sendable, Hashable {
        /// The maximum number of events in one run.
        package var files: Int
        /// The time without a further event after which the batch runs.
        package var wait: Duration
        /// The maximum time that the first event waits for others.
        package var maximumWait: Duration

        package init(files: Int = 1_000, wait: Duration = .milliseconds(500), maximumWait: Duration = .seconds(60)) {
            (self.files, self.wait, self.maximumWait) = (files, wait, maximumWait)
        }
    }

    /// The name, unique in the ruleset; the path as written for a rule without one.
    package var name: String
    /// The expanded path, which identifies a rule without a name; nil for a rule with a name.
    package var identifyingPath: String?
    /// The start of the entry.
    package var location: SourcePosition
    /// The absolute directory of the rules file, which relative paths are relative to.
    package var baseDirectory: PathBytes
    package var summary: String?
    /// The paths that the rule matches by name.
    package var filter: PathFilter
    package var types: Set<FileType>
    package var events: EventMask
    package var settle: SettlePolicy
    /// Nil if the rules file does not say: a run ignores existing files, and one with `--once` processes them.
    package var existing: Existing?
    package var missing: MissingRoot = .wait
    /// The handling of a rewrite with the same bytes.
    package var sameContent: Reporting = .report
    /// The handling of changes that the rule's own actions make to their input file.
    package var ownWrites: Reporting = .ignore
    package var tail: Tail?
    package var batch: Batch?
    package var backend: Backend
    /// The interval between two scans of a polled root.
    package var pollInterval: Duration = .seconds(10)
    /// The actions, run in order; the list stops at the first action that does not succeed.
    package var actions: [Action]
    package var timeout: Duration
    /// The maximum number of concurrent jobs of this rule.
    package var concurrency: Int
    package var retry: RetryPolicy
    package var whileBusy: WhileBusy = .coalesce
    /// The minimum time between the end of a run for a path and the start of the next.
    package var cooldown: Duration = .zero
    /// The actions that run once when a job becomes a failed job; empty for none.
    package var onFailure: [Action] = []
    /// Whether changes made while Alight was not running are reported at the start.
    package var catchUp = true
    /// The former names of the rule: data stored under them belongs to this rule.
    package var formerly: [String] = []
    /// The condition on a file beyond its path: `where:`.
    package var condition: Condition?
    /// Whether actions receive the writer: `by`.
    package var reportsWriter = false
    /// The tags that `alight run --tag` selects rules by.
    package var tags: [String] = []
    /// The priority: rules with a higher priority run their due jobs first, and precede others for `stop`.
    package var priority = 0
    /// Whether later rules do not receive the events that this rule matches: `stop`.
    package var isLast = false
    /// The hours in which actions start; nil for always.
    package var window: RunWindow?
    /// The requirements for a file to be ready; nil for none.
    package var ready: Readiness?
    /// The files that are handled together; nil for each separately.
    package var group: Grouping?
    /// Additional environment variables of programs.
    package var environment: [EnvironmentVariable] = []
    /// The chosen standard input of programs; nil if none was chosen.
    package var chosenInput: StandardInput?
    /// The working directory of programs; nil for that of the rules file, or their own scratch directory.
    package var directory: Template?
    /// The resources, files and user of programs.
    package var confinement = Confinement()

    package init(
        name: String, location: SourcePosition, baseDirectory: PathBytes = "/",
        filter: PathFilter = PathFilter(globs: []),
        types: Set<FileType> = [.file], events: EventMask = [.created, .modified],
        settle: SettlePolicy = SettlePolicy(), backend: Backend = .auto, actions: [Action] = [],
        timeout: Duration = .seconds(600), concurrency: Int = 1, retry: RetryPolicy = RetryPolicy()
    ) {
        (self.name, self.location, self.baseDirectory, self.filter) = (name, location, baseDirectory, filter)
        (self.types, self.events, self.settle, self.backend) = (types, events, settle, backend)
        (self.actions, self.timeout, self.concurrency, self.retry) = (actions, timeout, concurrency, retry)
    }

    package var globs: [Glob] { filter.globs }

    /// The directories before the globs' first wildcards, without duplicates.
    package var roots: [PathBytes] { filter.roots.map { PathBytes($0) } }

    /// Returns the root of the first glob that matches the path by name; nil if no glob does.
    package func root(matching path: PathBytes) -> PathBytes? {
        filter.root(matching: path.bytes).map { PathBytes($0) }
    }

    /// The standard input of the rule's programs; nil if it depends on the action.
    ///
    /// Only the request contains all files of a batch or group, and the text of `tail`.
    package var input: StandardInput? {
        chosenInput ?? (batch != nil || group != nil || tail != nil ? .request : nil)
    }

    /// The action that runs the `command` of `ready`; nil if there is none.
    package var question: Action? {
        guard let command = ready?.command else { return nil }
        var question = Action(.exec(command), location: location)
        question.isQuestion = true
        return question
    }

    /// Whether the writer must be known.
    package var needsWriter: Bool { reportsWriter || condition?.asksForWriter ?? false }

    /// Whether the rule could match a path strictly below this directory.
    package func reaches(below directory: PathBytes) -> Bool { filter.reaches(below: directory.bytes) }
}

/// An environment variable that a rule sets for its programs.
package struct EnvironmentVariable: Sendable, Hashable {
    package var name: String
    package var value: Template

    package init(name: String, value: Template) { (self.name, self.value) = (name, value) }
}

// The selection of paths as it is stored.
extension Rule {
    /// The paths that the rule matches, as a string: equal for two rules only if they match the same paths.
    ///
    /// It contains only the number of built-in ignores, so that another version of the ignores changes the selection
    /// only if their number changes.
    package var selection: String {
        var lines = filter.globs.map { Self.line("path", $0) }
        lines += filter.exclude.globs.map { Self.line("exclude", $0) }
        lines += filter.outputs.globs.map { Self.line("outputs", $0) }
        lines.append("ignores \(filter.ignores.globs.count)")
        if let depth = filter.depth { lines.append("depth \(depth)") }
        lines.append("types \(types.map(\.rawValue).sorted().joined(separator: " "))")
        if filter.isTree { lines.append("tree") }
        return lines.joined(separator: "\n")
    }

    /// Returns the filter and the types of another ``selection`` of the rule; invalid lines match nothing.
    package func matching(_ selection: String) -> (filter: PathFilter, types: Set<FileType>) {
        var globs: [String: [Glob]] = [:]
        var former = PathFilter(globs: [], ignores: filter.ignores)
        var types: Set<FileType> = []
        for line in selection.split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 1)
            let value = parts.count > 1 ? parts[1] : ""
            switch parts[0] {
            case "depth": former.depth = Int(value)
            case "tree": former.isTree = true
            case "types": types = Set(value.split(separator: " ").compactMap { FileType(rawValue: String($0)) })
            default: if let glob = Self.glob(value) { globs[String(parts[0]), default: []].append(glob) }
            }
        }
        former.globs = globs["path"] ?? []
        former.exclude = GlobSet(globs["exclude"] ?? [])
        former.outputs = GlobSet(globs["outputs"] ?? [])
        return (former, types)
    }

    private static func glob(_ text: Substring) -> Glob? {
        var text = text
        var options = Glob.Options()
        if text.hasPrefix("("), let end = text.firstIndex(of: ")") {
            options.matchesHidden = text[..<end].contains("h")
            options.isCaseSensitive = text[..<end].contains("c")
            text = text[end...].dropFirst(2)
        }
        return try? Glob(text.utf8, options: options)
    }

    private static func line(_ key: String, _ glob: Glob) -> String {
        let options = (glob.options.matchesHidden ? "h" : "") + (glob.options.isCaseSensitive ? "c" : "")
        // Bytes that are not UTF-8 are written as numbers, to keep such patterns distinct.
        let text = String(validating: glob.pattern, as: UTF8.self) ?? "\(glob.pattern)"
        return options.isEmpty ? "\(key) \(text)" : "\(key) (\(options)) \(text)"
    }
}

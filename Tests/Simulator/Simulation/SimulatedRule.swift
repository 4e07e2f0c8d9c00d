package import FileEvents
import Globbing
import Rules
import System

/// The effect of one step of a simulated action.
package enum Behaviour: String, Sendable, Hashable {
    /// A program that reads the file.
    case read
    /// A program that reads the file and changes it.
    case edit
    /// A built-in action that takes the file away.
    case take
    /// A built-in action that leaves the file unchanged.
    case note
    /// A built-in action that writes a file of the same name into the directory `o`.
    case copy

    private var isProgram: Bool { self == .read || self == .edit }

    fileprivate func action(_ place: SourcePosition) -> Action {
        let reference = HandlerReference(
            name: self == .take ? "move" : rawValue, location: isProgram ? "/plugin" : nil)
        let traits: HandlerTraits =
            switch self {
            case .take: [.isBrief, .removesInput]
            case .copy: .isBrief
            default: []
            }
        return Action(.use(reference, with: .object([:])), location: place, traits: traits)
    }
}

/// A rule of a simulated run.
package struct SimulatedRule: Sendable, Hashable, CustomStringConvertible {
    package var name = "rule"
    package var events: EventMask = .differences
    package var steps: [Behaviour] = [.read]
    /// Files of at least this size are refused by `where`.
    package var refusedSize: UInt64?
    /// Whether `where` asks for the content type, which is unknown here.
    ///
    /// Files are refused when an action is about to start.
    package var refusesContent = false
    /// Names below the base directory that the rule excludes.
    package var outside: [String] = []
    package var isPolled = false
    package var catchUp = true
    package var whileBusy = WhileBusy.coalesce
    package var concurrency = 4
    package var batch: Int?
    package var cooldown = Duration.zero
    /// Whether later rules do not receive the files that this rule matches.
    package var stops = false
    package var onFailure: [Behaviour] = []
    /// The names of which each group has one, with the same stem.
    package var group: [String] = []
    /// Whether the rule is for directories, each handled as one unit.
    package var isTree = false
    /// Whether events include the text appended to a file.
    package var follows = false
    /// The minute of the day from which actions may start; nil for any time.
    package var opens: Int?

    package init() {}

    static let quiet = Duration.milliseconds(100)

    func rule(in base: PathBytes) -> Rule {
        let location = SourcePosition(file: "rules.yaml", line: 1, column: 1)
        let globs = [try? Glob(base.appending(isTree ? "*" : "**").bytes)].compactMap(\.self)
        let excluded = outside.compactMap { try? Glob(PathBytes($0).bytes) }
        var rule = Rule(
            name: name, location: location,
            filter: PathFilter(globs: globs, exclude: GlobSet(excluded), isTree: isTree),
            types: isTree ? [.directory] : [.file], events: events,
            settle: SettlePolicy(quiet: Self.quiet, writers: follows ? .ignore : .wait, isTree: isTree),
            backend: isPolled ? .poll : .auto,
            actions: steps.map { $0.action(location) }, concurrency: concurrency,
            retry: RetryPolicy(attempts: 3, delay: .seconds(1)))
        rule.catchUp = catchUp
        rule.whileBusy = whileBusy
        rule.cooldown = cooldown
        rule.isLast = stops
        rule.tail = follows ? Rule.Tail() : nil
        rule.tail?.hasLines = false
        rule.onFailure = onFailure.map { $0.action(location) }
        rule.batch = batch.map { Rule.Batch(files: $0, wait: .milliseconds(50)) }
        if !group.isEmpty, let key = Template("${stem}") {
            let kinds = group.compactMap { name in
                (try? Glob(PathBytes(name).bytes)).map { Grouping.Kind(text: name, glob: $0) }
            }
            rule.group = Grouping(key: key, required: kinds)
        }
        rule.window = opens.map { RunWindow([RunWindow.Span(start: $0, end: 24 * 60)]) }
        if let refusedSize {
            rule.condition = .size(Comparisons([.init(.less, refusedSize)], text: "< \(refusedSize)"))
        }
        if refusesContent { rule.condition = .mime([Condition.MediaPattern(type: nil, subtype: nil)]) }
        return rule
    }

    /// Whether the group of a file has one file of each kind.
    func isComplete(_ path: PathBytes, among paths: some Sequence<PathBytes>) -> Bool {
        let stem = path.bytes.prefix { $0 != .dot }
        let set = paths.lazy.filter { $0.parent == path.parent && $0.bytes.prefix { $0 != .dot } == stem }
        return group.allSatisfy { kind in set.contains { $0.bytes.suffix(2) == Array(kind.utf8).suffix(2)[...] } }
    }

    /// Whether `where` accepts a file.
    func wants(_ snapshot: Snapshot) -> Bool { !refusesContent && refusedSize.map { snapshot.size < $0 } ?? true }

    package var description: String {
        var words = ["events \(events)", "steps \(steps.map(\.rawValue).joined(separator: "+"))"]
        if let refusedSize { words.append("where size < \(refusedSize)") }
        if refusesContent { words.append("where mime */*") }
        if !outside.isEmpty { words.append("exclude \(outside.joined(separator: " "))") }
        if isPolled { words.append("polled") }
        if !catchUp { words.append("catch_up: false") }
        if whileBusy != .coalesce { words.append("while_busy: \(whileBusy)") }
        if concurrency != 4 { words.append("concurrency \(concurrency)") }
        if let batch { words.append("batch \(batch)") }
        if cooldown != .zero { words.append("cooldown \(cooldown)") }
        if stops { words.append("stop") }
        if !group.isEmpty { words.append("group ${stem}, require \(group.joined(separator: " "))") }
        if isTree { words.append("tree") }
        if follows { words.append("tail") }
        if let opens { words.append("window from minute \(opens)") }
        if !onFailure.isEmpty { words.append("on_failure \(onFailure.map(\.rawValue).joined(separator: "+"))") }
        return "\(name): " + words.joined(separator: ", ")
    }
}

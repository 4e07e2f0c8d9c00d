package import FileEvents
import FileWatching
import Globbing
import PluginProtocol
package import Rules
import Settling
import System

/// What one step of a simulated action does.
package enum Behaviour: String, Sendable, Hashable {
    /// A program reads the file.
    case read
    /// A program reads the file and changes it.
    case edit
    /// A built-in action takes the file away.
    case take
    /// A built-in action that leaves the file alone.
    case note
    /// A built-in action that writes a file of the same name into the directory `o`.
    case copy

    private var isProgram: Bool { self == .read || self == .edit }

    fileprivate func action(_ place: SourcePlace) -> Action {
        let reference = HandlerReference(
            name: self == .take ? "move" : rawValue, location: isProgram ? "/plugin" : nil)
        return Action(.use(reference, with: .object([:])), place: place)
    }
}

/// A rule of a simulated run.
package struct SimulatedRule: Sendable, Hashable, CustomStringConvertible {
    package var name = "rule"
    package var events: EventMask = .differences
    package var steps: [Behaviour] = [.read]
    /// Files of at least this size are refused by `where`.
    package var refusedSize: UInt64?
    /// Whether `where` asks for the content type, which nobody can tell here: files are refused when an action is to begin.
    package var refusesContent = false
    /// Names below the base directory that the rule excludes.
    package var outside: [String] = []
    package var isPolled = false
    package var catchUp = true
    package var whileBusy = Rule.WhileBusy.coalesce
    package var concurrency = 4
    package var batch: Int?
    package var cooldown = Duration.zero
    /// Whether later rules receive nothing of what it matches.
    package var stops = false
    package var onFailure: [Behaviour] = []
    /// The names of which one each belongs to a set, by the stem.
    package var group: [String] = []
    /// Whether it is for directories, each one unit with all below it.
    package var isTree = false
    /// Whether events bring the text that was added to a file.
    package var follows = false
    /// The minutes of a day after which actions may begin; nil for at any time.
    package var opens: Int?
    /// Whether its action runs on another host, and goes on when the program is killed.
    package var isRemote = false

    package init() {}

    static let quiet = Duration.milliseconds(100)

    func rule(in base: PathBytes) -> Rule {
        let place = SourcePlace(file: "rules.yaml", line: 1, column: 1)
        let globs = [try? Glob(base.appending(isTree ? "*" : "**").bytes)].compactMap(\.self)
        let excluded = outside.compactMap { try? Glob(PathBytes($0).bytes) }
        var rule = Rule(
            name: name, place: place, filter: PathFilter(globs: globs, exclude: GlobSet(excluded), isTree: isTree),
            types: isTree ? [.directory] : [.file], events: events,
            settle: SettlePolicy(quiet: Self.quiet, writers: follows ? .ignore : .wait, isTree: isTree),
            backend: isPolled ? .poll : .auto,
            actions: steps.map { $0.action(place) }, concurrency: concurrency,
            retry: RetryPolicy(attempts: 3, delay: .seconds(1)))
        rule.catchUp = catchUp
        rule.whileBusy = whileBusy
        rule.cooldown = cooldown
        rule.isLast = stops
        rule.tail = follows ? Rule.Tail() : nil
        rule.onFailure = onFailure.map { $0.action(place) }
        rule.batch = batch.map { Rule.Batch(files: $0, wait: .milliseconds(50)) }
        if !group.isEmpty, let key = try? Template("${stem}", environment: { _ in nil }) {
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

    /// Whether the set of a file has one of each kind.
    func isComplete(_ path: PathBytes, among paths: some Sequence<PathBytes>) -> Bool {
        let stem = path.bytes.prefix { $0 != .dot }
        let set = paths.lazy.filter { $0.parent == path.parent && $0.bytes.prefix { $0 != .dot } == stem }
        return group.allSatisfy { kind in set.contains { $0.bytes.suffix(2) == Array(kind.utf8).suffix(2)[...] } }
    }

    /// Whether the reconciler alone does all that it asks for.
    var isForLedger: Bool {
        batch == nil && cooldown == .zero && onFailure.isEmpty && group.isEmpty && opens == nil && !refusesContent
            && !stops
    }

    /// Whether `where` lets a file pass.
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

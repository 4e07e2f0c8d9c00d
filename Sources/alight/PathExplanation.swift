import FileEvents
import FileWatching
import Foundation
import Globbing
import Handling
import PluginProtocol
import Rules
import Settling

/// What all rules do with one path, as text and as JSON.
struct PathExplanation {
    struct OfRule {
        var explanation: Explanation
        /// The name that the rule has for the path, when symbolic links lead to another one.
        var alias: PathBytes?
        /// The rule before it that keeps what it takes from later ones, and takes the path.
        var stopper: String?
    }

    let path: PathBytes
    let sight: DiskProbe.Sight
    let rules: [OfRule]

    /// Looks at the disk.
    init(_ path: PathBytes, rules: [Rule], in ruleset: Ruleset = Ruleset([]), isDisabled: (String) -> Bool) {
        self.path = path
        let sight = DiskProbe.look(at: path)
        self.sight = sight
        var sights = Explanation.Sights(
            path: sight, folder: { DiskProbe.look(at: $0) },
            root: { DiskProbe.look(at: DiskProbe.resolve($0) ?? $0) },
            polling: { PollingReason.untoldFileSystem(of: $0) })
        sights.content = { ConditionFacts.Content(lookingAt: path) }
        sights.now = DiskProbe.now()
        if case .present(let snapshot) = sight, snapshot.type == .file {
            sights.writers = DiskProbe.writers(of: path)
            if rules.contains(where: { $0.settle.locks == .wait }) { sights.locks = DiskProbe.locks(of: path) }
        }
        self.rules = rules.map { rule in
            let alias = Self.alias(of: path, in: rule)
            let explanation = Explanation(
                rule, isEnabled: !isDisabled(rule.name), path: alias ?? path, sights: sights)
            return OfRule(
                explanation: explanation, alias: alias,
                stopper: Self.stopper(of: explanation, sight, rule, ruleset))
        }
    }

    /// Who keeps the path from a rule that would take it, at the first thing that the rule is told of.
    private static func stopper(
        of explanation: Explanation, _ sight: DiskProbe.Sight, _ rule: Rule, _ ruleset: Ruleset
    ) -> String? {
        guard case .taken(let place) = explanation.verdict, let index = ruleset.index(of: rule.name) else { return nil }
        var snapshot = Snapshot.unseen
        snapshot.type = FileType.allCases.first(where: rule.types.contains) ?? .file
        if case .present(let present) = sight { snapshot = present }
        let kinds: [EventKind] = [.created, .modified, .moved, .deleted, .attributes]
        let kind = kinds.first { rule.events.contains(EventMask($0)) } ?? .modified
        let event = FileEvent(
            kind: kind, path: explanation.path, root: place.root, snapshot: snapshot, origin: .live,
            time: Timestamp(seconds: 0, nanoseconds: 0))
        return ruleset.stopper(of: event, to: index)?.name
    }

    /// The name below one of the rule's roots by which it sees a path that is outside of them by name.
    private static func alias(of path: PathBytes, in rule: Rule) -> PathBytes? {
        guard !rule.roots.contains(where: { path.isInside($0) }) else { return nil }
        let real = resolvingFolder(of: path)
        for root in rule.roots {
            guard let realRoot = DiskProbe.resolve(root), real != realRoot, let relative = real.relative(to: realRoot)
            else { continue }
            return root.appending(relative)
        }
        return nil
    }

    /// The path with the links in its deepest existing folder resolved.
    private static func resolvingFolder(of path: PathBytes) -> PathBytes {
        var folder = path.parent
        while folder != "/" {
            if let real = DiskProbe.resolve(folder), let rest = path.relative(to: folder) {
                return real.appending(rest)
            }
            folder = folder.parent
        }
        return path
    }
}

// MARK: - For people

extension PathExplanation {
    var text: String {
        let head = "\(Display.path(path)): \(what)"
        return ([head] + rules.flatMap(lines)).joined(separator: "\n")
    }

    private var what: String {
        switch sight {
        case .absent: "there is nothing of that name"
        case .unreadable(let errno): "it can't be looked at: \(String(cString: strerror(errno)))"
        case .present(let snapshot):
            snapshot.type == .file ? "a file of \(snapshot.size) bytes" : Self.noun(snapshot.type)
        }
    }

    private func lines(_ entry: OfRule) -> [String] {
        let explanation = entry.explanation
        let rule = explanation.rule
        let name = "  rule '\(Display.text(rule.name))' (\(Display.text(rule.place.description)))"
        let alias = entry.alias.map { ["    by the name \(Display.path($0))"] } ?? []
        switch explanation.verdict {
        case .left(let reason):
            let (message, help) = explanation.words(for: reason)
            return ["\(name) leaves it: \(message)"] + alias + (help.map { ["    help: \($0)"] } ?? [])
        case .taken(let place):
            var facts = ["root: \(Display.path(place.root)), and below it \(Display.path(place.relative))"]
            if let unit = place.unit { facts.append("part of \(Display.path(unit)), of which the rule is told as one") }
            if let stopper = entry.stopper {
                let name = Display.text(stopper)
                facts.append("not told of what '\(name)' takes, which comes before it ('stop: true')")
            }
            facts.append("watched: \(explanation.watching)")
            facts.append("told of: \(EventSpelling.words(of: rule.events).joined(separator: ", "))")
            facts.append("settled: \(explanation.settling)")
            for hold in explanation.holds { facts.append("now: \(hold.words)") }
            if let reason = explanation.untoldCondition {
                facts.append("whether 'where' holds can't be told: \(Display.text(reason))")
            }
            if rule.existing == .ignore {
                facts.append("not told of what is there already when a run starts ('existing: ignore')")
            }
            facts += rule.runningWords
            return ["\(name) takes it"] + alias + facts.map { "    \($0)" }
        }
    }

    fileprivate static func noun(_ type: FileType) -> String {
        switch type {
        case .file: "a file"
        case .directory: "a folder"
        case .symlink: "a symbolic link"
        case .other: "a pipe, socket or device"
        }
    }
}

extension Explanation.Hold {
    fileprivate var words: String {
        switch self {
        case .writer: "a process has it open for writing, so it would wait"
        case .lock: "a process holds a write lock on it, so it would wait"
        case .unknown:
            "whether a process has it open for writing can't be told, so two looks, 1 s apart, would have to agree"
        }
    }
}

extension Explanation {
    fileprivate var watching: String {
        polling.map { "by polling every \(Self.shown(rule.pollInterval)), \($0.text)" } ?? "by inotify"
    }

    fileprivate var settling: String {
        let settle = rule.settle
        let quiet = settle.quiet(isPolled: polling != nil)
        var parts = [quiet == .zero ? "at once" : "after \(Self.shown(quiet)) without a change"]
        if let stable = settle.stable(isPolled: polling != nil) {
            let times = stable.rounds == 1 ? "once" : "\(stable.rounds) times"
            parts.append("size and time the same \(times) more, \(Self.shown(stable.every)) apart")
        }
        if settle.writers == .wait, rule.types.contains(.file) || settle.isTree {
            parts.append("no process has it open for writing")
        }
        if settle.locks == .wait { parts.append("no process holds a write lock on it") }
        if let longest = settle.maximumWait { parts.append("at the latest after \(Self.shown(longest))") }
        return parts.joined(separator: "; ")
    }

    /// `500 ms`, `2 s`, `1.5 s`.
    static func shown(_ duration: Duration) -> String {
        if duration < .seconds(1) { return "\(Int((duration / .milliseconds(1)).rounded())) ms" }
        let seconds = ((duration / .seconds(1)) * 1_000).rounded() / 1_000
        return seconds == seconds.rounded() ? "\(Int(seconds)) s" : "\(seconds) s"
    }

    /// Why, and what to do about it.
    fileprivate func words(for reason: Reason) -> (message: String, help: String?) {
        switch reason {
        case .name(let refusal): return words(for: refusal)
        case .belowLink(let link):
            return ("\(Self.quoted(link)) is a symbolic link, and links below the root are not followed", nil)
        case .type(let type):
            let types = FileType.allCases.filter(rule.types.contains).map(\.rawValue).joined(separator: ", ")
            return (
                "it is \(PathExplanation.noun(type)), and the types of the rule are \(types)",
                "add '\(type == .other ? "any" : type.rawValue)' to 'types'"
            )
        case .unreadable(let errno): return ("it can't be looked at: \(String(cString: strerror(errno)))", nil)
        case .noEvents:
            let words = EventSpelling.words(of: rule.events).joined(separator: ", ")
            return ("the rule is told only of the watching: \(words)", "add 'created' or another to 'events'")
        case .rootMissing(let root):
            let consequence =
                switch rule.missing {
                case .wait: "the rule waits for it ('missing: wait')"
                case .fail: "a run would stop there ('missing: fail')"
                case .create: "a run makes it ('missing: create')"
                }
            return ("the root \(Self.quoted(root)) does not exist; \(consequence)", nil)
        case .rootNotFolder(let root, let type):
            return (
                "the root \(Self.quoted(root)) is \(PathExplanation.noun(type)), so a run would stop",
                "name a folder in front of the first wildcard of 'path'"
            )
        case .disabled: return ("the rule is disabled", "set 'enabled: true'")
        case .condition(let reason): return ("'where' does not hold: \(Display.text(reason))", nil)
        }
    }

    private func words(for refusal: PathFilter.Refusal) -> (message: String, help: String?) {
        let glob = "'\(Display.text(refusal.glob.pattern))'"
        switch refusal.reason {
        case .outside where rule.roots.contains(path): return ("it is the root, and not in it", nil)
        case .outside:
            let roots = rule.roots.map(Self.quoted).joined(separator: " and of ")
            return ("it is outside of \(roots)", nil)
        case .above where type != .directory: return ("\(glob) matches only what lies further down", nil)
        case .glob where type == .directory && rule.reaches(below: path), .above:
            return ("it is a folder on the way to what \(glob) matches", nil)
        case .glob(let part):
            return ("\(glob) does not match; it fails at '\(Display.text(part))'", nil)
        case .hidden(let part):
            return ("'\(Display.text(part))' has a leading dot, which wildcards don't match", "set 'hidden: true'")
        case .depth(let levels, let limit):
            let folders = levels == 1 ? "1 folder" : "\(levels) folders"
            return ("it lies \(folders) below the root, and 'depth' is \(limit)", nil)
        case .leftOut(let kind, let glob, let part): return Self.words(kind, glob, part, path)
        }
    }

    private static func words(
        _ kind: PathFilter.Refusal.LeftOut, _ glob: Glob, _ part: [UInt8], _ path: PathBytes
    ) -> (message: String, help: String?) {
        let pattern = "'\(Display.text(glob.pattern))'"
        let isWhole = path.bytes.suffix(part.count + 1).elementsEqual([.slash] + part)
        let what = isWhole ? "leaves it out" : "leaves out '\(Display.text(part))' and all in it"
        switch kind {
        case .exclude: return ("\(pattern) in 'exclude' \(what)", nil)
        case .outputs: return ("\(pattern) in 'outputs' \(what), as written by the rule's own action", nil)
        case .ignores:
            let entry = DefaultIgnores.entries.first { $0.pattern.utf8.elementsEqual(glob.pattern) }
            let reason = entry.map { " (\($0.reason))" } ?? ""
            return ("the built-in ignore \(pattern) \(what)\(reason)", "set 'ignore_defaults: false'")
        }
    }

    private static func quoted(_ path: PathBytes) -> String { "'\(Display.path(path))'" }
}

// MARK: - For machines

extension PathExplanation {
    /// One object for each rule.
    var objects: [[String: JSONValue]] {
        rules.map { entry in
            let explanation = entry.explanation
            let rule = explanation.rule
            var object: [String: JSONValue] = [
                "rule": .string(rule.name), "place": .string(rule.place.description),
                "taken": .bool(explanation.isTaken), "type": .null,
            ]
            object.add("path", path)
            if case .present(let snapshot) = sight { object["type"] = .string(snapshot.type.rawValue) }
            if let alias = entry.alias { object.add("alias", alias) }
            switch explanation.verdict {
            case .left(let reason):
                let (message, help) = explanation.words(for: reason)
                object["reason"] = .string(reason.code)
                object["message"] = .string(message)
                if let help { object["help"] = .string(help) }
                if case .name(let refusal) = reason { object.merge(refusal.members) { _, new in new } }
            case .taken(let place):
                object.add("root", place.root)
                object.add("relative", place.relative)
                if let unit = place.unit { object.add("unit", unit) }
                object.merge(explanation.members) { _, new in new }
                if let stopper = entry.stopper { object["stopped_by"] = .string(stopper) }
            }
            return object
        }
    }
}

extension Explanation {
    fileprivate var members: [String: JSONValue] {
        let isPolled = polling != nil
        var object: [String: JSONValue] = [
            "events": .array(EventSpelling.words(of: rule.events).map { .string($0) }),
            "backend": isPolled ? "poll" : "inotify",
            "settle_ms": .number(rule.settle.quiet(isPolled: isPolled) / .milliseconds(1)),
            "writers": .string(rule.settle.writers.rawValue), "locks": .string(rule.settle.locks.rawValue),
            "existing": .string(rule.existing.rawValue), "held_by": .array(holds.map { .string($0.rawValue) }),
        ]
        if let reason = untoldCondition { object["where_untold"] = .string(reason) }
        if isPolled { object["poll_ms"] = .number(rule.pollInterval / .milliseconds(1)) }
        if case .fileSystem(let name) = polling { object["file_system"] = .string(name) }
        if let stable = rule.settle.stable(isPolled: isPolled) {
            object["stable"] = [
                "every_ms": .number(stable.every / .milliseconds(1)), "rounds": .integer(Int64(stable.rounds)),
            ]
        }
        if let longest = rule.settle.maximumWait { object["max_wait_ms"] = .number(longest / .milliseconds(1)) }
        object.merge(rule.runningMembers) { _, new in new }
        return object
    }
}

extension Explanation.Reason {
    fileprivate var code: String {
        switch self {
        case .name(let refusal):
            switch refusal.reason {
            case .outside: "outside"
            case .above: "above"
            case .glob: "glob"
            case .hidden: "hidden"
            case .depth: "depth"
            case .leftOut(let kind, _, _): kind.rawValue
            }
        case .belowLink: "link"
        case .type: "type"
        case .unreadable: "unreadable"
        case .noEvents: "events"
        case .rootMissing: "root_missing"
        case .rootNotFolder: "root_not_a_folder"
        case .disabled: "disabled"
        case .condition: "where"
        }
    }
}

extension PathFilter.Refusal {
    /// The glob, and the part of the path that it is about.
    fileprivate var members: [String: JSONValue] {
        var object: [String: JSONValue] = ["glob": .string(glob.description)]
        switch reason {
        case .outside, .above, .depth: break
        case .glob(let part), .hidden(let part): object.add("part", PathBytes(part))
        case .leftOut(_, let pattern, let part):
            object["pattern"] = .string(pattern.description)
            object.add("part", PathBytes(part))
        }
        return object
    }
}

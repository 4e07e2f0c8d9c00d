import FileEvents
import Globbing
import JSON
import Rules
import System
import Watching

// The reasons why a rule does not match a path.
extension Explanation {
    /// A code for programs, a message for users, and a remedy.
    typealias Words = (code: String, message: String, help: String?)

    func words(for reason: Reason) -> Words {
        switch reason {
        case .name(let refusal): return words(for: refusal)
        case .belowLink(let link):
            let message = "\(Display.quoted(link)) is a symbolic link, and links below the root are not followed"
            return ("link", message, nil)
        case .type(let type):
            let types = FileType.allCases.filter(rule.types.contains).map(\.rawValue).joined(separator: ", ")
            let message = "it is \(PathExplanation.noun(type)), and the types of the rule are \(types)"
            return ("type", message, "add '\(type == .other ? "any" : type.rawValue)' to 'types'")
        case .unreadable(let errno):
            return ("unreadable", "it cannot be accessed: \(SystemError(errno: errno))", nil)
        case .noEvents:
            let words = EventSpelling.words(of: rule.events).joined(separator: ", ")
            let message = "the rule receives only events of the watch itself: \(words)"
            return ("events", message, "add 'created' or another to 'events'")
        case .rootMissing(let root):
            let consequence =
                switch rule.missing {
                case .wait: "the rule waits for it ('missing: wait')"
                case .fail: "'alight run' would fail ('missing: fail')"
                case .create: "'alight run' would create it ('missing: create')"
                }
            return ("root_missing", "the root \(Display.quoted(root)) does not exist; \(consequence)", nil)
        case .rootNotDirectory(let root, let type):
            let noun = PathExplanation.noun(type)
            let message = "the root \(Display.quoted(root)) is \(noun), and is not watched"
            return ("root_not_a_directory", message, "name a directory before the first wildcard of 'path'")
        case .disabled: return ("disabled", "the rule is disabled", "set 'enabled: true'")
        case .event(let word):
            let words = EventSpelling.words(of: rule.events).joined(separator: ", ")
            return ("event", "it receives \(words), not \(word)", "add '\(word)' to 'events'")
        case .stopped(let stopper):
            return ("stop", "rule '\(Display.text(stopper))' matches first and stops ('stop: true')", nil)
        case .condition(let reason): return ("where", "'where' does not match: \(Display.text(reason))", nil)
        }
    }

    private func words(for refusal: PathFilter.Refusal) -> Words {
        let glob = "'\(Display.text(refusal.glob.pattern))'"
        switch refusal.reason {
        case .outside:
            let roots = rule.roots.map(Display.quoted).joined(separator: " and of ")
            return ("outside", rule.roots.contains(path) ? "it is the root itself" : "it is outside of \(roots)", nil)
        case .above where type != .directory: return ("above", "\(glob) matches only paths further down", nil)
        case .above: return ("above", "it is a directory above the paths that \(glob) matches", nil)
        case .glob where type == .directory && rule.reaches(below: path):
            return ("glob", "it is a directory above the paths that \(glob) matches", nil)
        case .glob(let part): return ("glob", "\(glob) differs at '\(Display.text(part))'", nil)
        case .hidden(let part):
            let message = "'\(Display.text(part))' has a leading dot, which wildcards don't match"
            return ("hidden", message, "set 'hidden: true'")
        case .depth(let levels, let limit):
            let directories = Reporter.count(levels, "directory")
            return ("depth", "it is \(directories) below the root, and 'depth' is \(limit)", nil)
        case .excluded(let kind, let glob, let part): return words(kind, glob, part)
        }
    }

    private func words(_ kind: PathFilter.Refusal.Exclusion, _ glob: Glob, _ part: [UInt8]) -> Words {
        let code = kind.rawValue
        let pattern = "'\(Display.text(glob.pattern))'"
        let isWhole = path.bytes.suffix(part.count + 1).elementsEqual([.slash] + part)
        let what = isWhole ? "excludes it" : "excludes '\(Display.text(part))' and everything below it"
        switch kind {
        case .exclude: return (code, "\(pattern) in 'exclude' \(what)", nil)
        case .outputs: return (code, "\(pattern) in 'outputs' \(what), as written by the rule's own action", nil)
        case .ignores:
            let entry = (DefaultIgnores.entries + DefaultIgnores.followingEntries).first {
                $0.pattern.utf8.elementsEqual(glob.pattern)
            }
            let reason = entry.map { " (\($0.reason))" } ?? ""
            return (code, "the built-in ignore \(pattern) \(what)\(reason)", "set 'ignore_defaults: false'")
        }
    }
}

// How the actions of a rule run, for `alight explain`.
extension Rule {
    /// The settings that differ from the default, as text.
    var runningWords: [String] {
        var words: [String] = []
        if retry != RetryPolicy() { words.append("attempts: \(retry.words)") }
        if whileBusy == .restart {
            words.append("changed while its action runs: the action is stopped and started again")
        }
        if cooldown > .zero { words.append("between two runs: at least \(Explanation.shown(cooldown))") }
        if priority != 0 { words.append("priority: \(priority)") }
        if isLast { words.append("later rules receive no events of paths that it matches ('stop: true')") }
        if reportsWriter { words.append("receives the process that wrote ('by: true')") }
        if ready != nil { words.append("also has to be ready ('ready')") }
        if let group {
            words.append("handled with its group, which requires \(group.required.map(\.text).joined(separator: ", "))")
        }
        if let batch {
            words.append(
                "batch: up to \(batch.files) files, \(Explanation.shown(batch.wait)) after the last one, "
                    + "at the latest \(Explanation.shown(batch.maximumWait)) after the first")
        }
        if !tags.isEmpty { words.append("tags: \(tags.map { Display.text($0) }.joined(separator: ", "))") }
        if window != nil { words.append("starts only within its 'window'") }
        if !onFailure.isEmpty { words.append("when a job fails permanently: \(failureActionNames)") }
        if !catchUp { words.append("ignores changes made while Alight was not running ('catch_up: false')") }
        if !formerly.isEmpty { words.append("formerly: \(formerly.map { Display.text($0) }.joined(separator: ", "))") }
        return words
    }

    /// The same settings as JSON, including those with default values.
    var runningMembers: [String: JSONValue] {
        .init([
            "retry": JSONValue.members([
                "attempts": retry.attempts, "delay_ms": retry.delay.milliseconds,
                "max_delay_ms": retry.maximumDelay.milliseconds, "on": retry.on.rawValue,
            ]), "while_busy": whileBusy.rawValue, "cooldown_ms": cooldown.milliseconds,
            "on_failure": onFailure.map(\.name), "catch_up": catchUp, "formerly": formerly, "by": reportsWriter,
            "priority": priority, "stop": isLast, "tags": tags,
        ])
    }

    /// The names of the actions that run when a job fails.
    var failureActionNames: String { onFailure.map(\.name).joined(separator: " + ") }
}

extension RetryPolicy {
    fileprivate var words: String {
        if attempts == 1 { return "1" }
        let pauses =
            delay == maximumDelay
            ? Explanation.shown(delay) : "\(Explanation.shown(delay)) to \(Explanation.shown(maximumDelay))"
        let failures = on == .temporary ? ", after temporary failures only" : ""
        return "at most \(attempts), \(pauses) apart\(failures)"
    }
}

/// The roots through which changes of a path are detected, and how they are watched.
struct Coverage {
    struct Root {
        var path: PathBytes
        /// The reason why the root is polled; nil for inotify.
        var polling: PollingReason?
        /// The polling interval.
        var interval: Duration
        var isThere: Bool
        /// The reason why the root cannot be watched although it exists.
        var obstacle: WatchError?
        /// The first directory on the way to the path below which no rule matches anything, so that it is not watched.
        var unreached: PathBytes?
    }

    /// The roots that contain the path.
    ///
    /// A root that is the path itself is not included.
    var roots: [Root]
    /// All roots, if none contains the path.
    var others: [PathBytes]

    /// Determines the coverage by the rules that are loaded and enabled.
    init(of path: PathBytes, _ ruleset: Ruleset) {
        let holding = ruleset.roots.filter { path.isInside($0) && path != $0 }
        roots = holding.map { Root($0, holding: path, ruleset) }
        others = holding.isEmpty ? ruleset.roots : []
    }

    var isWatched: Bool { roots.contains { $0.unreached == nil } }
}

extension Coverage.Root {
    fileprivate init(_ root: PathBytes, holding path: PathBytes, _ ruleset: Ruleset) {
        self.path = root
        let rules = ruleset.rules.filter { $0.roots.contains(root) }
        interval = rules.map(\.pollInterval).min() ?? .zero
        isThere = KernelFileSystem().resolve(root) != nil
        obstacle = WatchError.obstacle(at: root)
        let directories = Explanation.directories(from: root, to: path)
        unreached = directories.first { !ruleset.reaches(below: $0) }
        polling = Explanation.polling(rules, directories) { PollingReason.unreliableFileSystem(of: $0) }
    }
}

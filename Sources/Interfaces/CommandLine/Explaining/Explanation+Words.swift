import Glibc
import Globbing
import Rules
import System

// The reasons why a rule does not match a path.
extension Explanation {
    /// Returns a code for programs, a message for users, and a remedy.
    func words(for reason: Reason) -> (code: String, message: String, help: String?) {
        switch reason {
        case .name(let refusal): return words(for: refusal)
        case .belowLink(let link):
            return ("link", "\(Self.quoted(link)) is a symbolic link, and links below the root are not followed", nil)
        case .type(let type):
            let types = FileType.allCases.filter(rule.types.contains).map(\.rawValue).joined(separator: ", ")
            return (
                "type", "it is \(PathExplanation.noun(type)), and the types of the rule are \(types)",
                "add '\(type == .other ? "any" : type.rawValue)' to 'types'"
            )
        case .unreadable(let errno):
            return ("unreadable", "it cannot be accessed: \(String(cString: strerror(errno)))", nil)
        case .noEvents:
            let words = EventSpelling.words(of: rule.events).joined(separator: ", ")
            return (
                "events", "the rule receives only events of the watch itself: \(words)",
                "add 'created' or another to 'events'"
            )
        case .rootMissing(let root):
            let consequence =
                switch rule.missing {
                case .wait: "the rule waits for it ('missing: wait')"
                case .fail: "'alight run' would fail ('missing: fail')"
                case .create: "'alight run' would create it ('missing: create')"
                }
            return ("root_missing", "the root \(Self.quoted(root)) does not exist; \(consequence)", nil)
        case .rootNotFolder(let root, let type):
            return (
                "root_not_a_folder",
                "the root \(Self.quoted(root)) is \(PathExplanation.noun(type)), so 'alight run' would fail",
                "name a directory before the first wildcard of 'path'"
            )
        case .disabled: return ("disabled", "the rule is disabled", "set 'enabled: true'")
        case .event(let word):
            let words = EventSpelling.words(of: rule.events).joined(separator: ", ")
            return ("event", "it receives \(words), not \(word)", "add '\(word)' to 'events'")
        case .stopped(let stopper):
            return ("stop", "rule '\(Display.text(stopper))' matches first and stops ('stop: true')", nil)
        case .condition(let reason): return ("where", "'where' does not match: \(Display.text(reason))", nil)
        }
    }

    private func words(for refusal: PathFilter.Refusal) -> (code: String, message: String, help: String?) {
        let glob = "'\(Display.text(refusal.glob.pattern))'"
        switch refusal.reason {
        case .outside where rule.roots.contains(path): return ("outside", "it is the root itself", nil)
        case .outside:
            let roots = rule.roots.map(Self.quoted).joined(separator: " and of ")
            return ("outside", "it is outside of \(roots)", nil)
        case .above where type != .directory: return ("above", "\(glob) matches only paths further down", nil)
        case .above: return ("above", "it is a directory above the paths that \(glob) matches", nil)
        case .glob where type == .directory && rule.reaches(below: path):
            return ("glob", "it is a directory above the paths that \(glob) matches", nil)
        case .glob(let part): return ("glob", "\(glob) differs at '\(Display.text(part))'", nil)
        case .hidden(let part):
            return (
                "hidden", "'\(Display.text(part))' has a leading dot, which wildcards don't match", "set 'hidden: true'"
            )
        case .depth(let levels, let limit):
            let folders = levels == 1 ? "1 directory" : "\(levels) directories"
            return ("depth", "it is \(folders) below the root, and 'depth' is \(limit)", nil)
        case .leftOut(let kind, let glob, let part): return Self.words(kind, glob, part, path)
        }
    }

    private static func words(
        _ kind: PathFilter.Refusal.LeftOut, _ glob: Glob, _ part: [UInt8], _ path: PathBytes
    ) -> (code: String, message: String, help: String?) {
        let code = kind.rawValue
        let pattern = "'\(Display.text(glob.pattern))'"
        let isWhole = path.bytes.suffix(part.count + 1).elementsEqual([.slash] + part)
        let what = isWhole ? "excludes it" : "excludes '\(Display.text(part))' and everything below it"
        switch kind {
        case .exclude: return (code, "\(pattern) in 'exclude' \(what)", nil)
        case .outputs: return (code, "\(pattern) in 'outputs' \(what), as written by the rule's own action", nil)
        case .ignores:
            let entry = DefaultIgnores.entries.first { $0.pattern.utf8.elementsEqual(glob.pattern) }
            let reason = entry.map { " (\($0.reason))" } ?? ""
            return (code, "the built-in ignore \(pattern) \(what)\(reason)", "set 'ignore_defaults: false'")
        }
    }

    private static func quoted(_ path: PathBytes) -> String { "'\(Display.path(path))'" }
}

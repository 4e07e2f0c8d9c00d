import FileEvents
import Globbing
import Rules
import System

// Warnings about paths that can't match, as far as it can be determined cheaply, and about patterns of the wrong
// kind.
extension RuleChecks {
    /// Warns about a glob that can't match anything.
    func checkReach(of pattern: PathPattern) {
        let warning =
            refusal(of: pattern, filter: draft.rule.filter) ?? hiding(of: pattern)
            ?? absence(of: pattern, draft.rule)
        if let warning { problems.warning(warning.message, at: mark(pattern.node), help: warning.help) }
    }

    /// Returns the filter that excludes everything the glob matches.
    private func refusal(of pattern: PathPattern, filter: PathFilter) -> (message: String, help: String)? {
        let root = PathBytes(pattern.glob.root)
        func covered(by set: GlobSet, _ globs: [Glob]) -> Bool {
            guard !set.isEmpty else { return false }
            func isCovered(_ sample: [UInt8]) -> Bool {
                PathBytes(sample).relative(to: root).map { set.covers($0) } ?? false
            }
            // One plain sample usually rules this out; creating all samples is slow.
            for limit in [1, 16] {
                guard pattern.glob.samples(.plain, limit: limit).allSatisfy(isCovered) else { return false }
            }
            let samples = pattern.glob.samples(PathWords(of: [pattern.glob] + globs))
            return !samples.isEmpty && samples.allSatisfy(isCovered)
        }
        let sets = [
            (filter.exclude, filter.exclude.globs, "'exclude' excludes", "narrow 'exclude', or remove this path"),
            (filter.outputs, filter.outputs.globs, "'outputs' excludes", "narrow 'outputs', or remove this path"),
            (
                filter.ignores, [], "the built-in ignores exclude",
                "write 'ignore_defaults: false' to include such files"
            ),
        ]
        for (set, globs, subject, help) in sets where covered(by: set, globs) {
            return ("this can't match: \(subject) all that it matches", help)
        }
        if let depth = filter.depth, let names = pattern.glob.leastNames, names > depth + 1 {
            return (
                "this can't match: 'depth: \(depth)' descends fewer levels than it has below its root",
                "write 'depth: \(names - 1)', or remove it"
            )
        }
        return nil
    }

    /// Returns a warning for a pattern that requires hidden names although wildcards do not match them.
    private func hiding(of pattern: PathPattern) -> (message: String, help: String)? {
        guard !draft.globOptions.matchesHidden else { return nil }
        let bytes = pattern.glob.pattern
        let names = bytes.split(separator: .slash)
        if names.contains(where: { $0.starts(with: "[.]".utf8) }) {
            return (
                "this can't match: a character class does not match a leading dot",
                "write '.' without brackets, or 'hidden: true'"
            )
        }
        guard !bytes.contains(where: { "[{\\".utf8.contains($0) }), let last = names.last?.first,
            "*?".utf8.contains(last), let wanted = draft.rule.condition?.certainNames,
            wanted.contains(where: { $0.allSatisfy { $0.pattern.first == .dot } })
        else { return nil }
        return ("this can't match: 'where' requires hidden names, which wildcards do not match", "write 'hidden: true'")
    }

    /// Returns a warning for a path that does not exist or has another file type.
    private func absence(of pattern: PathPattern, _ rule: Rule) -> (message: String, help: String)? {
        let root = PathBytes(pattern.glob.root)
        if case .missing = FileReading.kind(of: root) {
            let near = neighbor(of: root).map { "write '\(escaped($0.description, limit: 80))', " }
            if rule.missing == .fail {
                return (
                    "the directory \(quoted(root.description)) does not exist, and with 'missing: fail' a run fails",
                    (near ?? "") + "create it, or write 'missing: wait' or 'missing: create'"
                )
            }
            if let near { return ("the directory \(quoted(root.description)) does not exist", "\(near)or create it") }
        }
        guard !rule.types.contains(.directory), case let samples = pattern.glob.samples(PathWords()),
            samples.count == 1, case .directory = FileReading.kind(of: PathBytes(samples[0]))
        else { return nil }
        return (
            "this is a directory, and the rule does not match directories",
            "add '/*' for its files, or '/**' for all files below it"
        )
    }

    /// Returns the root with the name of an existing directory in place of a similar one that does not exist.
    private func neighbor(of root: PathBytes) -> PathBytes? {
        var missing = root
        while missing.parent != missing, case .missing = FileReading.kind(of: missing.parent) {
            missing = missing.parent
        }
        let parent = missing.parent
        // Short names are similar to many, and numbered ones, such as 'disk2' beside 'disk1', are not misspelled.
        func letters(_ name: String) -> String { name.filter { !$0.isNumber } }
        guard let name = PathBytes(missing.lastComponent).text, letters(name).count > 3,
            let names = try? FileReading.names(in: parent),
            let near = Spelling.nearest(
                to: name, in: names.compactMap { PathBytes($0).text }.filter { letters($0) != letters(name) }),
            case .directory = FileReading.kind(of: parent.appending(near)), let rest = root.relative(to: missing)
        else { return nil }
        let path = parent.appending(near)
        return rest.isEmpty ? path : path.appending(rest)
    }

    // MARK: - Groups

    /// Warns about a kind that a group requires and the rule never matches, so that no group is ever complete.
    func checkKinds() {
        let filter = draft.rule.filter
        guard draft.group != nil, !patterns.isEmpty else { return }
        let paths = patterns.map { quoted($0.node.text ?? $0.glob.description) }
        let shown = paths.prefix(3).joined(separator: " or ") + (paths.count > 3 ? " …" : "")
        for required in draft.required {
            let kind = quoted(required.kind.text)
            let (reason, remedy): (String, String)
            if !mayMatch(filter, required.kind.glob) {
                (reason, remedy) = ("\(shown) matches no file", "add a glob for such files to 'path'")
            } else if required.kind.glob.samples(PathWords()).allSatisfy({ filter.ignores.covers($0) }) {
                (reason, remedy) = ("the built-in ignores exclude all files", "write 'ignore_defaults: false'")
            } else {
                continue
            }
            problems.warning(
                "no group can be complete: \(reason) of the kind \(kind)", at: required.mark,
                help: "\(remedy), or remove \(kind) from 'require'")
        }
    }

    /// Whether the filter can match a name of the kind, without regard to the built-in ignores.
    private func mayMatch(_ filter: PathFilter, _ kind: Glob) -> Bool {
        guard !filter.isTree else { return true }
        var filter = filter
        filter.ignores = GlobSet([])
        let words = PathWords(of: [kind], for: filter.globs)
        return filter.globs.contains { glob in
            glob.samples(words).contains { path in
                kind.matches(PathBytes(path).lastComponent) && filter.glob(matching: path) != nil
            }
        }
    }
}

extension Glob {
    /// The number of path components of every match below the root; nil if it varies or can't be determined cheaply.
    fileprivate var leastNames: Int? {
        guard !pattern.contains(where: { "{\\".utf8.contains($0) }) else { return nil }
        let names = pattern.split(separator: .slash)
        let anywhere = names.count { $0.elementsEqual("**".utf8) }
        // A final `**` matches at least one component.
        let last = names.last?.elementsEqual("**".utf8) == true ? 1 : 0
        return names.count - root.split(separator: .slash).count - anywhere + last
    }
}

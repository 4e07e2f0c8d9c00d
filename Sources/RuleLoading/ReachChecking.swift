import FileEvents
import Globbing
import Rules

// Warnings of paths that can't match, as far as that is seen at once, and of patterns of the wrong kind.
extension RuleDecoder {
    /// Warns of a glob that can't take anything.
    func checkReach(of pattern: PathPattern, _ draft: RuleDraft) {
        let warning =
            refusal(of: pattern, filter: draft.rule.filter) ?? hiding(of: pattern, draft)
            ?? absence(of: pattern, draft.rule)
        if let warning { problems.warning(warning.message, at: mark(pattern.node), help: warning.help) }
    }

    /// What leaves out all that the glob takes.
    private func refusal(of pattern: PathPattern, filter: PathFilter) -> (message: String, help: String)? {
        guard let samples = PathSample.samples(of: pattern.glob) else { return nil }
        let root = PathBytes(pattern.glob.root)
        func covered(by set: GlobSet) -> Bool {
            samples.allSatisfy { sample in PathBytes(sample).relative(to: root).map { set.covers($0) } ?? false }
        }
        if covered(by: filter.exclude) {
            return (
                "this can't match: 'exclude' excludes all that it matches", "narrow 'exclude', or remove this path"
            )
        }
        if covered(by: filter.outputs) {
            return (
                "this can't match: 'outputs' excludes all that it matches", "narrow 'outputs', or remove this path"
            )
        }
        if covered(by: filter.ignores) {
            return (
                "this can't match: the built-in ignores exclude all that it matches",
                "write 'ignore_defaults: false' to include such files"
            )
        }
        if let depth = filter.depth, let names = pattern.glob.leastNames, names > depth + 1 {
            return (
                "this can't match: 'depth: \(depth)' descends fewer levels than it has below its root",
                "write 'depth: \(names - 1)', or remove it"
            )
        }
        return nil
    }

    /// What asks for hidden names where wildcards leave them out.
    private func hiding(of pattern: PathPattern, _ draft: RuleDraft) -> (message: String, help: String)? {
        guard !draft.matchesHidden else { return nil }
        let bytes = pattern.glob.pattern
        let names = bytes.split(separator: .slash)
        if names.contains(where: { $0.starts(with: "[.]".utf8) }) {
            return (
                "this can't match: a class matches no leading dot", "write '.' without brackets, or 'hidden: true'"
            )
        }
        guard !bytes.contains(where: { "[{\\".utf8.contains($0) }), let last = names.last?.first,
            "*?".utf8.contains(last), let wanted = draft.rule.condition?.certainNames,
            wanted.contains(where: { $0.allSatisfy { $0.pattern.first == .dot } })
        else { return nil }
        return (
            "this can't match: 'where' asks for hidden names, which wildcards do not match", "write 'hidden: true'"
        )
    }

    /// What is not on the disk, or is something else there.
    private func absence(of pattern: PathPattern, _ rule: Rule) -> (message: String, help: String)? {
        if rule.missing == .fail, case .missing = FileReading.kind(of: PathBytes(pattern.glob.root)) {
            let root = escaped(String(decoding: pattern.glob.root, as: UTF8.self), limit: 80)
            return (
                "the directory '\(root)' does not exist, and with 'missing: fail' a run fails",
                "make it, or write 'missing: wait' or 'missing: create'"
            )
        }
        guard !rule.types.contains(.directory), let samples = PathSample.samples(of: pattern.glob),
            Set(samples).count == 1, case .folder = FileReading.kind(of: PathBytes(samples[0]))
        else { return nil }
        return (
            "this is a directory, and the rule matches none", "add '/*' for its files, or '/**' for all files below it"
        )
    }

    // MARK: - Groups

    /// Warns of a kind that a group needs and the rule never takes, so that no group is ever complete.
    func checkKinds(_ draft: RuleDraft, patterns: [PathPattern]) {
        let filter = draft.rule.filter
        guard draft.group != nil, !patterns.isEmpty else { return }
        let paths = patterns.map { quoted($0.node.text ?? $0.glob.description) }
        let shown = paths.prefix(3).joined(separator: " or ") + (paths.count > 3 ? " …" : "")
        for required in draft.required {
            let kind = required.kind
            let files = PathSet([.anything, .literal([.slash]), .name(of: [kind.glob])])
            if files.isMissed(by: filter) {
                problems.warning(
                    "no group can be complete: \(shown) matches no file of the kind \(quoted(kind.text))",
                    at: required.mark,
                    help: "add a glob for such files to 'path', or remove \(quoted(kind.text)) from 'require'")
            } else if let samples = PathSample.samples(of: kind.glob), samples.allSatisfy({ filter.ignores.covers($0) })
            {
                problems.warning(
                    "no group can be complete: the built-in ignores exclude every file of the kind \(quoted(kind.text))",
                    at: required.mark,
                    help: "write 'ignore_defaults: false', or remove \(quoted(kind.text)) from 'require'")
            }
        }
    }

    // MARK: - Patterns of the wrong kind

    /// Warns of a regular expression where a glob is read, as which it is right, too.
    func warnOfExpression(_ text: String, _ node: YAMLNode, key: String) {
        // Most paths have none of these, and need no search.
        guard text.utf8.contains(where: { #"\^$("#.utf8.contains($0) }) else { return }
        let signs = [#"\d"#, #"\w"#, #"\s"#, #"\D"#, #"\W"#, #"\S"#, "(?:", #".*\."#, #".+\."#]
        let isEnded = text.hasSuffix("$") && !text.hasSuffix(#"\$"#)
        let isMiddle = text.contains(#"\."#) || text.contains(".*") || text.contains(".+")
        guard text.hasPrefix("^") || isEnded && isMiddle || signs.contains(where: text.contains) else { return }
        problems.warning(
            "\(quoted(text)) looks like a regular expression, but '\(key)' expects globs", at: mark(node),
            help: "write a glob, such as '~/inbox/*.jpg', and 'where: { regex: … }' for what names hold")
    }

    /// Warns of a glob like `IMG_*.jpg` where a regular expression is read, as which it is right, too.
    func warnOfGlob(_ text: String, _ node: YAMLNode) {
        guard let star = text.lastIndex(of: "*") else { return }
        let head = text[..<star].utf8
        let tail = text[star...].utf8.dropFirst()
        let isWord = { (byte: UInt8) in
            Unicode.Scalar(byte).properties.isAlphabetic || (0x30...0x39).contains(byte)
        }
        guard !head.isEmpty, head.allSatisfy({ isWord($0) || "_- ".utf8.contains($0) }), tail.first == .dot,
            (2...6).contains(tail.count), tail.dropFirst().allSatisfy(isWord)
        else { return }
        problems.warning(
            "\(quoted(text)) looks like a glob, but 'regex' expects regular expressions", at: mark(node),
            help: "write 'name: \"\(escaped(text, limit: 80))\"'")
    }
}

extension Condition {
    /// The globs for names of which one has to match, for each `name` that is not a choice.
    var certainNames: [[Glob]] {
        switch self {
        case .name(let globs): [globs]
        case .all(let conditions): conditions.flatMap(\.certainNames)
        default: []
        }
    }
}

extension Glob {
    /// How many names every match has below the root; nil when that differs, or is not seen at once.
    fileprivate var leastNames: Int? {
        guard !pattern.contains(where: { "{\\".utf8.contains($0) }) else { return nil }
        let names = pattern.split(separator: .slash)
        let anywhere = names.count { $0.elementsEqual("**".utf8) }
        // A last `**` stands for one name at least.
        let last = names.last?.elementsEqual("**".utf8) == true ? 1 : 0
        return names.count - root.split(separator: .slash).count - anywhere + last
    }
}

/// Paths that a glob takes, to be tried on other globs.
enum PathSample {
    /// More alternatives than this are not tried.
    private static let limit = 64

    /// Two paths for each way through the braces, their wildcards replaced by different words.
    ///
    /// nil when the glob has classes, nested braces or very many ways.
    static func samples(of glob: Glob) -> [[UInt8]]? {
        guard let ways = ways(glob.pattern) else { return nil }
        let samples = ways.flatMap { way in ["Qx7q", "m3Vw"].compactMap { sample(of: way, wildcard: $0) } }
        guard samples.count == 2 * ways.count, samples.allSatisfy({ glob.matches($0) }) else { return nil }
        return samples
    }

    /// The patterns that a pattern with braces stands for.
    private static func ways(_ pattern: [UInt8]) -> [[UInt8]]? {
        guard let open = pattern.firstIndex(of: UInt8(ascii: "{")) else { return [pattern] }
        guard !pattern.contains(UInt8(ascii: "\\")), !pattern.contains(UInt8(ascii: "[")),
            let close = pattern[open...].firstIndex(of: UInt8(ascii: "}")),
            !pattern[(open + 1)..<close].contains(UInt8(ascii: "{"))
        else { return nil }
        let choices = pattern[(open + 1)..<close].split(
            separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
        guard (2...limit).contains(choices.count), let rest = ways(Array(pattern[(close + 1)...])),
            choices.count * rest.count <= limit
        else { return nil }
        return choices.flatMap { choice in rest.map { pattern[..<open] + choice + $0 } }
    }

    /// A path that the pattern takes, its wildcards replaced by a word; nil for patterns with classes or braces.
    private static func sample(of pattern: [UInt8], wildcard: String) -> [UInt8]? {
        var sample: [UInt8] = []
        var index = 0
        while index < pattern.count {
            switch pattern[index] {
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                return nil
            case UInt8(ascii: "\\"):
                index += 1
                guard index < pattern.count else { return nil }
                sample.append(pattern[index])
            case UInt8(ascii: "*"):
                while index + 1 < pattern.count, pattern[index + 1] == UInt8(ascii: "*") { index += 1 }
                sample += wildcard.utf8
            case UInt8(ascii: "?"):
                sample += wildcard.utf8.prefix(1)
            default:
                sample.append(pattern[index])
            }
            index += 1
        }
        return sample
    }
}

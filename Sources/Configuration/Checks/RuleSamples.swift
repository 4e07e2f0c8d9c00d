import Globbing
import Rules
import System

// Sample paths that a rule can match, to test against other rules.
extension Rule {
    /// All patterns that the rule's paths must match or must not match.
    var patterns: [Glob] {
        globs + filter.exclude.globs + filter.outputs.globs + (condition?.certainNames ?? []).joined()
    }

    /// Returns paths that the rule matches, with words in place of wildcards.
    func samples(_ words: PathWords) -> [[UInt8]] {
        globs.flatMap { $0.samples(words, limit: max(4_000 / globs.count, 16)) }.filter { glob(matching: $0) != nil }
    }

    /// Returns the glob by which the rule matches the path; nil if the path or the name does not match.
    func glob(matching path: [UInt8]) -> Glob? {
        let name = PathBytes(path).lastComponent
        guard (condition?.certainNames ?? []).allSatisfy({ $0.contains { $0.matches(name) } }) else { return nil }
        return filter.glob(matching: path)
    }

    /// The suffixes of the paths that the rule matches, in lower case; an empty string for any.
    var endings: [[UInt8]] { filter.isTree ? [[]] : globs.flatMap(\.endings) }

    /// Returns the glob by which the rule matches a parent directory of the path.
    func glob(matchingDirectoryOf path: [UInt8]) -> Glob? {
        let ends = path.indices.dropFirst().filter { path[$0] == .slash }
        return ends.lazy.compactMap { self.glob(matching: Array(path[..<$0])) }.first
    }
}

extension Condition {
    /// For each `name` condition that must match, its globs, one of which must match.
    var certainNames: [[Glob]] {
        switch self {
        case .name(let globs): [globs]
        case .all(let conditions): conditions.flatMap(\.certainNames)
        default: []
        }
    }
}

extension [[UInt8]] {
    /// Whether a string can have a suffix from both lists.
    func canMeet(_ others: [[UInt8]]) -> Bool {
        contains { one in
            others.contains { other in
                one.count < other.count
                    ? other.suffix(one.count).elementsEqual(one) : one.suffix(other.count).elementsEqual(other)
            }
        }
    }
}

import FileEvents
import Globbing
import Rules
import System

// Paths that a rule could match, to be tried on other rules.
extension Rule {
    /// All patterns that its paths have to match, or must not match.
    var patterns: [Glob] {
        globs + filter.exclude.globs + filter.outputs.globs + (condition?.certainNames ?? []).joined()
    }

    /// Paths that it matches, words in place of wildcards.
    func samples(_ words: PathWords) -> [[UInt8]] {
        globs.flatMap { $0.samples(words, limit: max(4_000 / globs.count, 16)) }.filter { glob(matching: $0) != nil }
    }

    /// The glob by which it matches the path; nil when the path or the name is not what it asks for.
    func glob(matching path: [UInt8]) -> Glob? {
        let name = PathBytes(path).lastComponent
        guard (condition?.certainNames ?? []).allSatisfy({ $0.contains { $0.matches(name) } }) else { return nil }
        return filter.glob(taking: path)
    }

    /// The ends of what it matches, in lower case; empty for any.
    var endings: [[UInt8]] { filter.isTree ? [[]] : globs.flatMap(\.endings) }

    /// The glob by which it matches a directory in which the path is.
    func glob(matchingFolderOf path: [UInt8]) -> Glob? {
        let ends = path.indices.dropFirst().filter { path[$0] == .slash }
        return ends.lazy.compactMap { self.glob(matching: Array(path[..<$0])) }.first
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

extension [[UInt8]] {
    /// Whether a text can have an end of both lists.
    func canMeet(_ others: [[UInt8]]) -> Bool {
        contains { one in
            others.contains { other in
                one.count < other.count
                    ? other.suffix(one.count).elementsEqual(one) : one.suffix(other.count).elementsEqual(other)
            }
        }
    }
}

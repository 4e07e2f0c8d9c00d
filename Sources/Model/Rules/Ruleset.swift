import FileEvents
import Globbing
package import Settling
package import System

/// All enabled rules, with what follows from them together.
package struct Ruleset: Sendable {
    /// In the order of files and entries, which is also the order of jobs for one path.
    package let rules: [Rule]
    /// The same with those between them that are disabled, for people to see.
    package let listed: [Rule]
    /// The different ways to settle; rules that agree settle a path once.
    package let policies: [SettlePolicy]
    /// The literal folders in front of the rules' wildcards, where watching begins.
    package let roots: [PathBytes]
    /// Whether any rule asks who did something.
    package let needsAuthors: Bool
    private let places: [String: Int]
    let filters: PathFilterIndex
    /// For each rule, how many come before it.
    let ranks: [Int]
    /// The least rank of a rule that lets later ones see nothing of what it takes; nil when there is none.
    let firstStop: Int?

    /// - Parameters:
    ///   - rules: The enabled rules.
    ///   - listed: These and the disabled ones, in order; nil when there are none of those.
    package init(_ rules: [Rule], listed: [Rule]? = nil) {
        self.rules = rules
        self.listed = listed ?? rules
        filters = PathFilterIndex(rules.map(\.filter))
        needsAuthors = rules.contains(where: \.needsAuthor)
        let ranks = Self.ranks(rules)
        self.ranks = ranks
        firstStop = rules.indices.filter { rules[$0].isLast }.map { ranks[$0] }.min()
        places = Dictionary(rules.enumerated().map { ($1.name, $0) }) { first, _ in first }
        var policies: [SettlePolicy] = []
        var roots: Set<PathBytes> = []
        // By index, since a rule is large to copy.
        for index in rules.indices {
            if !policies.contains(rules[index].settle) { policies.append(rules[index].settle) }
            roots.formUnion(rules[index].roots)
        }
        self.policies = policies
        self.roots = roots.sorted()
    }

    /// A rule that takes a path, by its index in `rules`.
    package struct Match: Sendable {
        package var rule: Int
        package var root: PathBytes
    }

    /// The rules that take the path by name, in order.
    package func rules(taking path: PathBytes) -> [Match] {
        var matches: [Match] = []
        for index in filters.candidates(for: path.bytes) {
            if let root = rules[index].root(taking: path) { matches.append(Match(rule: index, root: root)) }
        }
        return matches
    }

    /// Whether any rule takes the path by name, or a folder above it as one unit with what is in it.
    package func takes(_ path: PathBytes) -> Bool { filters.takes(path.bytes) }

    /// Whether any rule could take a path strictly below the folder: what makes it worth a watch.
    package func reaches(below folder: PathBytes) -> Bool { filters.reaches(below: folder.bytes) }

    /// Whether any rule could take a path directly in the folder: what makes it worth being told of what is written there.
    package func mayTake(in folder: PathBytes) -> Bool { filters.mayTake(in: folder.bytes) }

    package func rule(named name: String) -> Rule? { places[name].map { rules[$0] } }

    /// Those that are only listed.
    package var disabled: [Rule] { listed.filter { places[$0.name] == nil } }

    /// Whether the rule of that name is only listed.
    package func isDisabled(_ name: String) -> Bool { disabled.contains { $0.name == name } }

    /// Where the rule of that name stands in `rules`.
    package func index(of name: String) -> Int? { places[name] }
}

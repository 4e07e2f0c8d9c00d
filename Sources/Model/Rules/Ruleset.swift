package import FileEvents
import Globbing
package import System

/// All enabled rules, with the data derived from them.
package struct Ruleset: Sendable {
    /// The rules in the order of files and entries, which is also the order of jobs for one path.
    package let rules: [Rule]
    /// All rules in the same order, including the disabled ones, for display.
    package let listed: [Rule]
    /// The distinct settle policies; rules with the same policy settle a path once.
    package let policies: [SettlePolicy]
    /// The literal directories before the rules' wildcards, where watching starts.
    package let roots: [PathBytes]
    /// Whether any rule requests the writer.
    package let needsAuthors: Bool
    private let places: [String: Int]
    let filters: PathFilterIndex
    /// For each rule, the number of rules that precede it.
    let ranks: [Int]
    /// The lowest rank of a rule that stops later rules; nil if there is none.
    let firstStop: Int?

    /// - Parameters:
    ///   - rules: The enabled rules.
    ///   - listed: All rules including the disabled ones, in order; nil if none are disabled.
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
        // By index, because a rule is expensive to copy.
        for index in rules.indices {
            if !policies.contains(rules[index].settle) { policies.append(rules[index].settle) }
            roots.formUnion(rules[index].roots)
        }
        self.policies = policies
        self.roots = roots.sorted()
    }

    /// A rule that matches a path, by its index in `rules`.
    package struct Match: Sendable {
        package var rule: Int
        package var root: PathBytes
    }

    /// Returns the rules that match the path by name, in order.
    package func rules(taking path: PathBytes) -> [Match] {
        var matches: [Match] = []
        for index in filters.candidates(for: path.bytes) {
            if let root = rules[index].root(taking: path) { matches.append(Match(rule: index, root: root)) }
        }
        return matches
    }

    /// Whether any rule matches the path by name, or a directory above it as a unit with its contents.
    package func takes(_ path: PathBytes) -> Bool { filters.takes(path.bytes) }

    /// Whether any rule could match a path strictly below the directory, so that it needs a watch.
    package func reaches(below folder: PathBytes) -> Bool { filters.reaches(below: folder.bytes) }

    /// Whether any rule could match a path directly in the directory, so that writes there must be reported.
    package func mayTake(in folder: PathBytes) -> Bool { filters.mayTake(in: folder.bytes) }

    package func rule(named name: String) -> Rule? { places[name].map { rules[$0] } }

    /// The disabled rules.
    package var disabled: [Rule] { listed.filter { places[$0.name] == nil } }

    /// Whether the rule with that name is disabled.
    package func isDisabled(_ name: String) -> Bool { disabled.contains { $0.name == name } }

    /// Returns the index in `rules` of the rule with that name.
    package func index(of name: String) -> Int? { places[name] }
}

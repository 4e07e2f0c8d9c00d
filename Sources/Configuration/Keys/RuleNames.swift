import Rules

/// A former name of a rule, and its range in the source.
struct FormerName {
    var name: String
    var range: Range<Int>
    /// The collector for a conflict, which is detected only after all files are read.
    var problems: DiagnosticCollector
    var location: SourcePosition
}

/// The names of rules, and the paths of those without a name, over all files.
final class RuleNames {
    /// The rules by their names, and those without one by their expanded paths.
    private var locations: [String: SourcePosition] = [:]
    /// The names, and the paths as written.
    private(set) var claimed: Set<String> = []

    /// Claims a name, or the expanded path of a rule without one; returns the location of the rule that has it already.
    func claim(_ identity: String, written: String, at location: SourcePosition) -> SourcePosition? {
        if let other = locations[identity] { return other }
        locations[identity] = location
        claimed.insert(written)
        return nil
    }

    /// Makes the names unique: where other rules have the name, a rule without one is named by its expanded path.
    static func makeUnique(_ rules: inout [DecodedRule]) {
        for indices in Dictionary(grouping: rules.indices, by: { rules[$0].rule.name }).values where indices.count > 1 {
            for index in indices {
                rules[index].rule.name = rules[index].rule.identifyingPath ?? rules[index].rule.name
            }
        }
    }

    /// Reports former names that belong to enabled rules, and those that two rules claim.
    static func check(_ rules: [DecodedRule]) {
        guard rules.contains(where: { !$0.formerly.isEmpty }) else { return }
        let enabled = rules.filter(\.isEnabled)
        let owners = Dictionary(enabled.map { ($0.rule.name, $0.rule.location) }) { first, _ in first }
        var claims: [String: SourcePosition] = [:]
        for former in enabled.flatMap(\.formerly) {
            if let owner = owners[former.name] {
                former.problems.error(
                    "the name \(quoted(former.name)) is used by the rule at \(owner)", at: former.range,
                    help: "remove it here, or rename that rule")
            } else if let other = claims[former.name] {
                former.problems.error(
                    "the rule at \(other) already takes over the name \(quoted(former.name))", at: former.range,
                    help: "only one rule can continue from its state; remove it from the other")
            } else {
                claims[former.name] = former.location
            }
        }
    }
}

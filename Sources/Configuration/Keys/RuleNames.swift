import Rules

/// A former name of a rule, and its range in the source.
struct FormerName {
    var name: String
    var range: Range<Int>
    /// The collector for a conflict, which is detected only after all files are read.
    var problems: DiagnosticCollector
    var location: SourcePosition
}

/// The names of rules, over all files.
final class RuleNames {
    private var locations: [String: SourcePosition] = [:]

    var claimed: Set<String> { Set(locations.keys) }

    /// Claims a name; returns the location of the rule that already has it.
    func claim(_ name: String, at location: SourcePosition) -> SourcePosition? {
        if let other = locations[name] { return other }
        locations[name] = location
        return nil
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

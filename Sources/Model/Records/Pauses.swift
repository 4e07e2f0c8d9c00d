/// The rules that a user has paused: their jobs wait and do not start.
package struct Pauses: Sendable, Hashable {
    /// Whether all rules are paused.
    package var all: Bool
    /// The rules that are paused by name, whether or not all are.
    package var rules: Set<String>

    package init(all: Bool = false, rules: Set<String> = []) { (self.all, self.rules) = (all, rules) }

    package var isEmpty: Bool { !all && rules.isEmpty }

    /// Whether the rule's jobs wait.
    package func hold(_ rule: String) -> Bool { all || rules.contains(rule) }

    /// Pauses a rule, or all for nil.
    package mutating func pause(_ rule: String?) { if let rule { rules.insert(rule) } else { all = true } }

    /// Resumes a rule; with nil all rules, including those paused by name.
    package mutating func resume(_ rule: String?) { if let rule { rules.remove(rule) } else { self = Pauses() } }
}

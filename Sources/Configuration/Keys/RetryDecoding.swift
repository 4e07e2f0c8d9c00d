import Rules

// The handling of failed jobs, and of files that change while their action runs.
extension RuleDecoder {
    /// Reports a value of `while_busy` that conflicts with the rule's other keys.
    func checkWhileBusy(_ draft: RuleDraft) {
        let choice = draft.rule.whileBusy
        guard choice != .coalesce, let mark = draft["while_busy"].map({ self.mark($0) }) else { return }
        if draft.rule.tail != nil {
            problems.error(
                "'while_busy: \(choice.rawValue)' cannot be combined with 'tail'", at: mark,
                help: "remove it: text that is added while the action runs is delivered with the next event")
        } else if choice == .restart, draft.rule.batch != nil {
            problems.error(
                "'while_busy: restart' cannot be combined with 'batch'", at: mark,
                help: "write 'coalesce': stopping a run for one file would stop it for all others")
        }
    }

    /// Parses the former names of a rule.
    func formerly(_ entry: YAMLNode.Entry, name: String) -> [FormerName] {
        let nodes = entry.value.elements ?? [entry.value]
        guard !nodes.isEmpty else {
            problems.error(
                "'formerly' is empty", at: mark(entry), help: "write a former name of the rule, or remove the key")
            return []
        }
        var names: [FormerName] = []
        for node in nodes {
            let range = entry.value.elements == nil ? mark(entry) : mark(node)
            guard let former = text(node, name: "a name in 'formerly'", at: range) else { continue }
            if former == name {
                problems.error(
                    "\(quoted(former)) is the current name of the rule", at: range, help: "write a former name")
            } else if names.contains(where: { $0.name == former }) {
                problems.error("\(quoted(former)) is listed twice", at: range, help: "remove it")
            } else {
                names.append(
                    FormerName(
                        name: former, range: range, problems: problems, place: source.place(at: range.lowerBound)))
            }
        }
        return names
    }
}

/// A former name of a rule, and its range in the source.
struct FormerName {
    var name: String
    var range: Range<Int>
    /// The collector for a conflict, which is detected only after all files are read.
    var problems: DiagnosticCollector
    var place: SourcePlace
}

extension RuleNames {
    /// Reports former names that belong to enabled rules, and those that two rules claim.
    static func check(_ rules: [DecodedRule]) {
        guard rules.contains(where: { !$0.formerly.isEmpty }) else { return }
        let inForce = rules.filter(\.isEnabled)
        let owners = Dictionary(inForce.map { ($0.rule.name, $0.rule.place) }) { first, _ in first }
        var claims: [String: SourcePlace] = [:]
        for former in inForce.flatMap(\.formerly) {
            if let owner = owners[former.name] {
                former.problems.error(
                    "the name \(quoted(former.name)) is used by the rule at \(owner)", at: former.range,
                    help: "remove it here, or rename that rule")
            } else if let other = claims[former.name] {
                former.problems.error(
                    "the rule at \(other) already takes over the name \(quoted(former.name))", at: former.range,
                    help: "only one rule can continue from its state; remove it from the other")
            } else {
                claims[former.name] = former.place
            }
        }
    }
}

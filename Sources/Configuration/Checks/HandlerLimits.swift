import FileEvents
import Rules
import System

// Compares the events and types that a handler accepts with those that a rule uses.
extension RuleChecks {
    /// Reports events and types of the rule that the handler does not accept, and events that the handler needs.
    ///
    /// A handler in `on_failure` must accept at least one of the rule's events, but not all of them.
    func checkLimits(of step: DecodedStep, onFailure: Bool = false) {
        let events = draft.rule.events
        guard let handler = step.handler, let range = step.handlerMark else { return }
        let name = quoted(handler.reference.name)
        func list(_ words: [String]) -> String { words.joined(separator: ", ") }
        /// Lists words after a noun, which is in the plural for several.
        func nouns(_ noun: String, _ words: [String]) -> String {
            "the \(noun)\(words.count == 1 ? "" : "s") \(list(words.map { "'\($0)'" }))"
        }
        /// Reports words of `events` or `types` at the first of them.
        func reportExcess(_ words: [String], _ noun: String, at node: YAMLNode?, accepted: [String]) {
            problems.error(
                "\(name) does not accept \(nouns(noun, words))", at: node.map { mark($0) } ?? range,
                help: node == nil ? "write '\(noun)s: [\(list(accepted))]'" : "it accepts \(list(accepted))")
        }
        if let taken = handler.events, let covered = handler.covered {
            let excess = events.subtracting(covered)
            let accepted = EventSpelling.words(of: taken)
            if !onFailure, !excess.isEmpty {
                let word = draft.eventWords.first { !$0.mask.isDisjoint(with: excess) }
                reportExcess(EventSpelling.words(of: excess), "event", at: word?.node, accepted: accepted)
            } else if onFailure, excess == events {
                problems.error(
                    "\(name) accepts none of the events of the rule", at: range,
                    help: "it accepts \(list(accepted)); use another action")
            }
        }
        guard let taken = handler.types else { return }
        let excess = FileType.allCases.filter { draft.rule.types.contains($0) && !taken.contains($0) }
        if !excess.isEmpty {
            let word = draft.typeWords.first { !$0.types.isDisjoint(with: excess) }
            let accepted = FileType.allCases.filter(taken.contains).map(\.rawValue)
            reportExcess(excess.map(\.rawValue), "type", at: word?.node, accepted: accepted)
        }
        // Root events report a directory.
        guard !taken.contains(.directory), !events.isDisjoint(with: .lifecycle) else { return }
        let word = draft.eventWords.first { !$0.mask.isDisjoint(with: .lifecycle) }
        let event = EventSpelling.words(of: events.intersection(.lifecycle)).first ?? ""
        problems.error(
            "\(name) does not accept the type 'directory', and '\(event)' reports a directory",
            at: word.map { mark($0.node) } ?? range,
            help: "remove '\(event)', or use a handler that accepts directories")
    }
}

import FileEvents
import Rules
import System

// Compares the events and types that a handler accepts with those that a rule uses.
extension RuleDecoder {
    /// Reports events and types of the rule that the handler does not accept, and events that the handler needs.
    ///
    /// A handler in `on_failure` must accept at least one of the rule's events, but not all of them.
    func checkLimits(of step: DecodedStep, _ draft: RuleDraft, onFailure: Bool = false) {
        let events = draft.rule.events
        guard let handler = step.handler, let mark = step.handlerMark else { return }
        let name = quoted(handler.reference.name)
        if let taken = handler.events, let covered = handler.covered {
            let excess = events.subtracting(covered)
            if onFailure {
                if excess == events {
                    let list = EventSpelling.words(of: taken).joined(separator: ", ")
                    problems.error(
                        "\(name) accepts none of the events of the rule", at: mark,
                        help: "it accepts \(list); use another action")
                }
            } else if !excess.isEmpty {
                let word = draft.eventWords.first { !$0.mask.isDisjoint(with: excess) }
                let list = EventSpelling.words(of: taken).joined(separator: ", ")
                let words = EventSpelling.words(of: excess)
                let nouns = words.map { "'\($0)'" }.joined(separator: ", ")
                problems.error(
                    "\(name) does not accept \(words.count == 1 ? "the event" : "the events") \(nouns)",
                    at: word.map { self.mark($0.node) } ?? mark,
                    help: word == nil ? "write 'events: [\(list)]'" : "it accepts \(list)")
            }
        }
        let lacking = onFailure ? [] : handler.neededEvents.subtracting(events)
        if !lacking.isEmpty {
            let nouns = EventSpelling.words(of: lacking).map { "'\($0)'" }.joined(separator: ", ")
            let list = EventSpelling.words(of: events.union(handler.neededEvents)).joined(separator: ", ")
            problems.error(
                "\(name) needs \(nouns.contains(",") ? "the events" : "the event") \(nouns) too",
                at: draft.eventWords.first.map { self.mark($0.node) } ?? mark, help: "write 'events: [\(list)]'")
        }
        if let taken = handler.types {
            let excess = FileType.allCases.filter { draft.rule.types.contains($0) && !taken.contains($0) }
            if !excess.isEmpty {
                let word = draft.typeWords.first { !$0.types.isDisjoint(with: excess) }
                let list = FileType.allCases.filter(taken.contains).map(\.rawValue).joined(separator: ", ")
                let nouns = excess.map { "'\($0.rawValue)'" }.joined(separator: ", ")
                problems.error(
                    "\(name) does not accept \(excess.count == 1 ? "the type" : "the types") \(nouns)",
                    at: word.map { self.mark($0.node) } ?? mark,
                    help: word == nil ? "write 'types: [\(list)]'" : "it accepts \(list)")
            }
            checkLifecycle(name, taken, draft, otherwise: mark)
        }
    }

    /// Reports root events if the handler does not accept directories.
    private func checkLifecycle(
        _ name: String, _ taken: Set<FileType>, _ draft: RuleDraft, otherwise: Range<Int>
    ) {
        let events = draft.rule.events
        guard !taken.contains(.directory), !events.isDisjoint(with: .lifecycle) else { return }
        let word = draft.eventWords.first { !$0.mask.isDisjoint(with: .lifecycle) }
        let event = EventSpelling.words(of: events.intersection(.lifecycle)).first ?? ""
        problems.error(
            "\(name) does not accept the type 'directory', and '\(event)' reports a directory",
            at: word.map { mark($0.node) } ?? otherwise,
            help: "remove '\(event)', or use a handler that accepts directories")
    }
}

package import FileEvents
import Globbing
import System

extension Rule {
    /// Reads the content type of the file of an event; may block.
    package typealias Look = (FileEvent) -> ConditionFacts.Content

    /// Returns an unknown content type without reading the file.
    package static let noLook: @Sendable (FileEvent) -> ConditionFacts.Content = { _ in
        .untold("its content is not checked")
    }

    /// Whether the rule matches an event that another rule would receive: by name, type and kind.
    ///
    /// The result is independent of time: the rule may settle later, or may have received the event already. All tests
    /// that decide what a rule matches belong here, so that `stop` is consistent with them.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - look: Reads the content type, if the result depends on it.
    /// - Returns: Whether the rule matches; false if its conditions cannot be evaluated.
    func takes(_ event: FileEvent, looking look: Look) -> Bool {
        // The contents of a directory that is a unit belong to that unit.
        if filter.isTree, !filter.trees(holding: event.path.bytes).isEmpty { return true }
        guard let root = root(taking: event.path), types.contains(event.snapshot.type) else { return false }
        var event = event
        event.root = root
        // A rule without `moved` receives a move as a new name.
        let asksForIt =
            events.takes(event.kind, changed: event.changed) || event.kind == .moved && events.contains(.created)
        guard asksForIt else { return false }
        let isPast = event.kind == .deleted
        // Evaluated as for an existing file, to find out whether the result depends on the former content.
        if isPast { event.kind = .created }
        let answer = admits(event)
        guard answer == .needsContent else { return answer == .holds }
        // The former content of a deleted file cannot be determined.
        return !isPast && admits(event, content: look(event)) == .holds
    }
}

extension Ruleset {
    /// Returns the order of precedence of rules: by priority, then by their order in the files.
    static func precedence(_ rules: [Rule]) -> [Int] {
        rules.indices.sorted { (-rules[$0].priority, $0) < (-rules[$1].priority, $1) }
    }

    /// Returns for each rule the number of rules that precede it.
    static func ranks(_ rules: [Rule]) -> [Int] {
        var ranks = rules.map { _ in 0 }
        for (rank, index) in precedence(rules).enumerated() { ranks[index] = rank }
        return ranks
    }

    /// Whether any preceding rule stops later rules.
    package func isAfterStop(_ index: Int) -> Bool { firstStop.map { $0 < ranks[index] } ?? false }

    /// Returns the rule that stops a later rule from receiving an event; nil if there is none.
    ///
    /// Evaluates only rules that could match the path, even if many rules have `stop`.
    package func stopper(of event: FileEvent, to index: Int, looking look: Rule.Look = Rule.noLook) -> Rule? {
        guard !event.kind.isLifecycle, isAfterStop(index) else { return nil }
        let path = event.path.bytes
        let could = filters.candidates(for: path) + filters.treeCandidates(for: path)
        return could.filter { rules[$0].isLast && ranks[$0] < ranks[index] }.sorted { ranks[$0] < ranks[$1] }.lazy
            .map { rules[$0] }.first { $0.takes(event, looking: look) }
    }
}

package import FileEvents
import Globbing
import System

extension Rule {
    /// Looks at what a file holds; it may block.
    package typealias Look = (FileEvent) -> ConditionFacts.Content

    /// Leaves it untold what a file holds.
    package static let noLook: @Sendable (FileEvent) -> ConditionFacts.Content = { _ in
        .untold("nobody looks at what it holds")
    }

    /// Whether the rule takes an event that another rule is to be told of: by name, by type and by what happened.
    ///
    /// It says nothing of when: the rule may settle later, and may have been told
    /// already. Here belongs all that decides what a rule takes, so that `stop` means the same.
    ///
    /// - Parameters:
    ///   - event: What happened.
    ///   - look: Finds out what a file holds, when all depends on that.
    /// - Returns: Whether the rule takes it; not if its conditions can't be told.
    func takes(_ event: FileEvent, looking look: Look) -> Bool {
        // What is in a folder that is one unit belongs to that.
        if filter.isTree, !filter.trees(holding: event.path.bytes).isEmpty { return true }
        guard let root = root(taking: event.path), types.contains(event.snapshot.type) else { return false }
        var event = event
        event.root = root
        // Who asks for no moves is told of a new name.
        let asksForIt =
            events.takes(event.kind, changed: event.changed) || event.kind == .moved && events.contains(.created)
        guard asksForIt else { return false }
        let isPast = event.kind == .deleted
        // Asked as of one that is there, so that it shows whether all depends on what the file held.
        if isPast { event.kind = .created }
        let answer = admits(event)
        guard answer == .needsContent else { return answer == .holds }
        // What a file held that is gone can't be found out.
        return !isPast && admits(event, content: look(event)) == .holds
    }
}

extension Ruleset {
    /// The order in which rules come before each other: by priority, then as they stand in the files.
    static func precedence(_ rules: [Rule]) -> [Int] {
        rules.indices.sorted { (-rules[$0].priority, $0) < (-rules[$1].priority, $1) }
    }

    /// For each rule, how many come before it.
    static func ranks(_ rules: [Rule]) -> [Int] {
        var ranks = rules.map { _ in 0 }
        for (rank, index) in precedence(rules).enumerated() { ranks[index] = rank }
        return ranks
    }

    /// Whether any rule before this one lets later ones see nothing of what it takes.
    package func isAfterStop(_ index: Int) -> Bool { firstStop.map { $0 < ranks[index] } ?? false }

    /// The rule that keeps a later one from an event; nil when it is told.
    ///
    /// Only those rules are asked that could take the path, however many stop.
    package func stopper(of event: FileEvent, to index: Int, looking look: Rule.Look = Rule.noLook) -> Rule? {
        guard !event.kind.isLifecycle, isAfterStop(index) else { return nil }
        let path = event.path.bytes
        let could = filters.candidates(for: path) + filters.treeCandidates(for: path)
        return could.filter { rules[$0].isLast && ranks[$0] < ranks[index] }.sorted { ranks[$0] < ranks[$1] }.lazy
            .map { rules[$0] }.first { $0.takes(event, looking: look) }
    }
}

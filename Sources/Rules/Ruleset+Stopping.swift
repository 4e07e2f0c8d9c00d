package import FileEvents
import Globbing

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
    ///   - isPast: Whether the file is not there any more.
    ///   - look: Finds out what a file holds, when all depends on that.
    /// - Returns: Whether the rule takes it; not if its conditions can't be told.
    func takes(_ event: FileEvent, isPast: Bool, looking look: Look) -> Bool {
        // What is in a folder that is one unit belongs to that.
        if filter.isTree, !filter.trees(holding: event.path.bytes).isEmpty { return true }
        guard let root = root(taking: event.path), types.contains(event.snapshot.type) else { return false }
        var event = event
        event.root = root
        // Who asks for no moves is told of a new name.
        let asksForIt =
            events.takes(event.kind, changed: event.changed) || event.kind == .moved && events.contains(.created)
        guard asksForIt else { return false }
        // Asked as of one that is there, so that it shows whether all depends on what the file held.
        if isPast { event.kind = .created }
        let answer = admits(event)
        guard answer == .needsContent else { return answer == .holds }
        // What a file held that is gone can't be found out; but who was not told of the file need not hear that it went.
        return isPast ? event.snapshot.standing == .withheld : admits(event, content: look(event)) == .holds
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
        stopper(of: event, isPast: event.kind == .deleted, to: index, looking: look)
    }

    private func stopper(of event: FileEvent, isPast: Bool, to index: Int, looking look: Rule.Look) -> Rule? {
        guard !event.kind.isLifecycle, isAfterStop(index) else { return nil }
        let path = event.path.bytes
        let could = filters.candidates(for: path) + filters.treeCandidates(for: path)
        return could.filter { rules[$0].isLast && ranks[$0] < ranks[index] }.sorted { ranks[$0] < ranks[$1] }.lazy
            .map { rules[$0] }.first { $0.takes(event, isPast: isPast, looking: look) }
    }

    /// What a rule is told of an event, after the rules before it that have `stop`; nil for nothing.
    ///
    /// A name that it does not see is to it as if it were not there: a file that is
    /// renamed to such a name has gone, and one that comes from there is new.
    package func told(_ event: FileEvent, to index: Int, looking look: Rule.Look = Rule.noLook) -> FileEvent? {
        guard isAfterStop(index) else { return event }
        let isHidden = stopper(of: event, to: index, looking: look) != nil
        guard event.kind == .moved, let from = event.from else { return isHidden ? nil : event }
        var former = event
        former.kind = .created
        former.path = from
        former.from = nil
        former.changed = []
        former.snapshot = event.before ?? event.snapshot
        let wasHidden = stopper(of: former, isPast: true, to: index, looking: look) != nil
        let received = rules[index].received(event, wasHidden: wasHidden, isHidden: isHidden)
        let isStopped = received?.kind == .deleted && stopper(of: received ?? event, to: index, looking: look) != nil
        return isStopped ? nil : received
    }
}

extension Rule {
    /// The move as the rule receives it if it sees only one of the two names, or neither.
    ///
    /// - Parameters:
    ///   - move: An event of the kind `moved`.
    ///   - wasHidden: Whether the former name was hidden from the rule.
    ///   - isHidden: Whether the new name is.
    /// - Returns: The move, its halves that the rule asks for, or nil for nothing.
    package func received(_ move: FileEvent, wasHidden: Bool, isHidden: Bool) -> FileEvent? {
        switch (wasHidden, isHidden) {
        case (false, false): return move
        case (true, true): return nil
        case (false, true):
            guard events.contains(.deleted), let from = move.from else { return nil }
            var gone = move
            gone.kind = .deleted
            gone.path = from
            gone.root = root(taking: from) ?? move.root
            gone.from = nil
            gone.changed = []
            gone.snapshot = move.before ?? move.snapshot
            gone.isReplaced = false
            gone.isByMove = true
            gone.tail = nil
            return gone
        case (true, false):
            var new = move
            new.kind = move.isReplaced ? .modified : .created
            new.from = nil
            new.before = nil
            new.changed = []
            new.isByMove = true
            return events.takes(new.kind, changed: []) ? new : nil
        }
    }
}

package import FileEvents
import Globbing

extension Rule {
    /// Looks at what a file holds; it may block.
    package typealias Look = (PathBytes) -> ConditionFacts.Content

    /// Leaves it untold what a file holds.
    package static let noLook: @Sendable (PathBytes) -> ConditionFacts.Content = { _ in
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
    package func takes(_ event: FileEvent, looking look: Look = Rule.noLook) -> Bool {
        // What is in a folder that is one unit belongs to that.
        if filter.isTree, !filter.trees(holding: event.path.bytes).isEmpty { return true }
        guard let root = root(taking: event.path), types.contains(event.snapshot.type) else { return false }
        var event = event
        event.root = root
        var answer = admits(event)
        if answer == .needsContent { answer = admits(event, content: look(event.path)) }
        guard answer == .holds else { return false }
        if events.takes(event.kind, changed: event.changed) { return true }
        // Who asks for no moves is told of a new name.
        return event.kind == .moved && events.contains(.created)
    }
}

extension Ruleset {
    /// The order in which rules come before each other: by priority, then as they stand in the files.
    static func precedence(_ rules: [Rule]) -> [Int] {
        rules.indices.sorted { (-rules[$0].priority, $0) < (-rules[$1].priority, $1) }
    }

    /// For each rule, those before it that let later ones see nothing of what they take.
    static func stops(_ rules: [Rule]) -> [[Int]] {
        var stops = rules.map { _ in [Int]() }
        var earlier: [Int] = []
        for index in precedence(rules) {
            stops[index] = earlier
            if rules[index].isLast { earlier.append(index) }
        }
        return stops
    }

    /// The rule that keeps a later one from an event; nil when it is told.
    package func stopper(of event: FileEvent, to index: Int, looking look: Rule.Look = Rule.noLook) -> Rule? {
        guard !event.kind.isLifecycle else { return nil }
        return stops[index].lazy.map { rules[$0] }.first { $0.takes(event, looking: look) }
    }

    /// What a rule is told of an event, after the rules before it that have `stop`; nil for nothing.
    ///
    /// A name that it does not see is to it as if it were not there: a file that is
    /// renamed to such a name has gone, and one that comes from there is new.
    package func told(_ event: FileEvent, to index: Int, looking look: Rule.Look = Rule.noLook) -> FileEvent? {
        guard !stops[index].isEmpty else { return event }
        let isHidden = stopper(of: event, to: index, looking: look) != nil
        guard event.kind == .moved, let from = event.from else { return isHidden ? nil : event }
        var former = event
        former.kind = .created
        former.path = from
        former.from = nil
        former.changed = []
        let wasHidden = stopper(of: former, to: index, looking: look) != nil
        let rule = rules[index]
        switch (wasHidden, isHidden) {
        case (false, false): return event
        case (true, true): return nil
        case (false, true):
            former.kind = .deleted
            former.root = rule.root(taking: from) ?? event.root
            former.snapshot = event.before ?? event.snapshot
            former.isReplaced = false
            former.isByMove = true
            former.tail = nil
            return rule.events.contains(.deleted) && stopper(of: former, to: index, looking: look) == nil ? former : nil
        case (true, false):
            var new = event
            new.kind = event.isReplaced ? .modified : .created
            new.from = nil
            new.before = nil
            new.changed = []
            new.isByMove = true
            return rule.events.takes(new.kind, changed: []) ? new : nil
        }
    }
}

package import FileEvents
import Handling
package import Reconciling
package import Rules

/// What `stop` of earlier rules and a rule's own `where` keep from it, worked out for one turn of the engine.
///
/// Whether an event has named a path is stored with the path's snapshot: once the file is gone, its content and its
/// writer cannot be determined any more, and its deletion is reported exactly if an event has named it before.
package struct Withholding {
    private struct Place: Hashable {
        var rule: String
        var path: PathBytes
    }

    /// What files hold: each is looked at once, however many rules ask.
    private final class Contents {
        private let find: Rule.Look
        private var known: [PathBytes: ConditionFacts.Content] = [:]

        init(_ find: @escaping Rule.Look) { self.find = find }

        func look(_ event: FileEvent) -> ConditionFacts.Content {
            if let content = known[event.path] { return content }
            let content = find(event)
            known[event.path] = content
            return content
        }
    }

    private let ruleset: Ruleset
    private let contents: Contents
    private var standings: [Place: Snapshot.Standing] = [:]

    /// - Parameters:
    ///   - ruleset: The rules that run.
    ///   - look: Finds out what a file holds.
    package init(
        _ ruleset: Ruleset, looking look: @escaping Rule.Look = { ConditionFacts.Content(lookingAt: $0) }
    ) {
        self.ruleset = ruleset
        contents = Contents(look)
    }

    /// What the rule is told of the event; nil for nothing.
    ///
    /// It looks at what the file holds where all depends on that: at a regular file, and its first bytes. Those that
    /// libmagic reads are 1 MiB and for some formats as many of the end. A look at a small text takes 0.5 ms, and at a
    /// file of 1 GiB 0.2 to 60 ms, nearly all of it libmagic's comparing; 10,000 texts take 5 s of the engine's thread.
    package mutating func told(_ event: FileEvent, to index: Int) -> FileEvent? {
        guard ruleset.isAfterStop(index) else { return event }
        let look = { [contents] event in contents.look(event) }
        switch event.kind {
        case .created, .modified, .moved:
            let stopper = ruleset.stopper(of: event, to: index, looking: look)
            // A file that the rule was told of stays known to it, whatever becomes of the file.
            if stopper == nil || event.kind != .modified { note(event.path, index, isRefused: stopper != nil) }
        default: break
        }
        return ruleset.told(event, to: index, looking: look)
    }

    /// What the rule receives of the event, after `stop` of earlier rules and its own `where`; nil for nothing.
    ///
    /// Conditions on the content are left to the attempt, and hold until then.
    ///
    /// - Parameters:
    ///   - event: What has settled.
    ///   - index: The rule.
    ///   - holds: Whether the rule's conditions hold for an event, as far as is known without its content.
    /// - Returns: The event, one of the halves of a move, or nil.
    package mutating func received(
        _ event: FileEvent, by index: Int, where holds: (FileEvent) -> Bool
    ) -> FileEvent? {
        guard let event = told(event, to: index) else { return nil }
        let rule = ruleset.rules[index]
        guard rule.condition != nil else { return event }
        switch event.kind {
        case .deleted:
            return switch event.snapshot.standing {
            case .withheld: nil
            case .named: event
            case .unknown: holds(event) ? event : nil
            }
        case .created, .modified, .attributes:
            let isRefused = !holds(event)
            if !isRefused || event.kind == .created { note(event.path, index, isRefused: isRefused) }
            return isRefused ? nil : event
        case .moved:
            let isHidden = !holds(event)
            note(event.path, index, isRefused: isHidden)
            return rule.received(event, wasHidden: wasHidden(event, holds), isHidden: isHidden)
        default: return holds(event) ? event : nil
        }
    }

    private func wasHidden(_ move: FileEvent, _ holds: (FileEvent) -> Bool) -> Bool {
        switch move.before?.standing ?? .unknown {
        case .withheld: return true
        case .named: return false
        case .unknown:
            var former = move
            former.kind = .created
            former.path = move.from ?? move.path
            former.snapshot = move.before ?? move.snapshot
            return !holds(former)
        }
    }

    private mutating func note(_ path: PathBytes, _ index: Int, isRefused: Bool) {
        standings[Place(rule: ruleset.rules[index].name, path: path)] = isRefused ? .withheld : .named
    }

    /// The entries of the turn, each with whether an event has named its path.
    package func noting(in entries: [LedgerEntry]) -> [LedgerEntry] {
        guard !standings.isEmpty else { return entries }
        return entries.map { entry in
            var entry = entry
            if let standing = standings[Place(rule: entry.view, path: entry.path)] {
                entry.snapshot?.standing = standing
            }
            return entry
        }
    }
}

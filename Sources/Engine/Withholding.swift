package import FileEvents
import Handling
package import Reconciling
package import Rules

/// What rules with `stop` keep from later ones, worked out for one turn of the engine.
///
/// That a rule was not told of a file is noted with what is known of it: once the
/// file has gone, nobody can say what it held, and whose it was.
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

        func look(_ path: PathBytes) -> ConditionFacts.Content {
            if let content = known[path] { return content }
            let content = find(path)
            known[path] = content
            return content
        }
    }

    private let ruleset: Ruleset
    private let contents: Contents
    private var isWithheld: [Place: Bool] = [:]

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
        let look = { [contents] path in contents.look(path) }
        switch event.kind {
        case .created, .modified, .moved:
            let stopper = ruleset.stopper(of: event, to: index, looking: look)
            // A file that the rule was told of stays known to it, whatever becomes of the file.
            if stopper == nil || event.kind != .modified {
                isWithheld[Place(rule: ruleset.rules[index].name, path: event.path)] = stopper != nil
            }
        default: break
        }
        return ruleset.told(event, to: index, looking: look)
    }

    /// The entries of the turn, with what has been kept from their rules noted.
    package func noting(in entries: [LedgerEntry]) -> [LedgerEntry] {
        guard !isWithheld.isEmpty else { return entries }
        return entries.map { entry in
            var entry = entry
            if let isWithheld = isWithheld[Place(rule: entry.view, path: entry.path)] {
                entry.snapshot?.isWithheld = isWithheld
            }
            return entry
        }
    }
}

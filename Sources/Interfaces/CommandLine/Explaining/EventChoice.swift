import FileEvents
import Rules
import System

/// The event that `alight explain --event` names.
struct EventChoice: Hashable {
    /// The word as written by the user.
    var word: String
    var kind: EventKind
    /// The changed attributes, for words that name only a part of a kind.
    var changed: [String]

    /// Parses a word; returns nil unless it names a single event of a path.
    init?(_ word: String) {
        guard let mask = EventMask(word: word), mask.isDisjoint(with: .lifecycle), mask.kinds.count == 1,
            let kind = mask.kinds.first
        else { return nil }
        self.word = word
        self.kind = kind
        changed = Self.changes(of: mask, kind)
    }

    /// Returns the changes of an event whose mask selects only parts of its kind.
    static func changes(of mask: EventMask, _ kind: EventKind) -> [String] {
        guard !mask.contains(EventMask(kind)) else { return [] }
        let narrow: EventMask =
            switch kind {
            case .modified: .content
            case .attributes: .anyAttribute
            default: []
            }
        let word = EventSpelling.words(of: mask.intersection(narrow)).first ?? ""
        return [String(word.split(separator: ".").last ?? "")]
    }

    /// The words that are accepted.
    static var words: [String] { EventMask.words.filter { EventChoice($0) != nil } }
}

/// The event of a path that a rule would receive next.
struct NextEvent {
    enum Ground: Hashable {
        case asked
        /// The path is not in the journal.
        case unknown
        case known
        /// Neither applies, but the rule receives no other events.
        case only
    }

    var event: FileEvent
    var ground: Ground

    /// Determines the event.
    ///
    /// - Parameters:
    ///   - choice: The event that the user named; nil for the event that would happen next.
    ///   - rule: The rule, which matches the path by name.
    ///   - place: The location of the path within the rule.
    ///   - path: The path of the event.
    ///   - sight: The snapshot of the path; nil if there is none.
    ///   - isKnown: Whether the journal records the path as known to the rule.
    ///   - now: The current time.
    init(
        _ choice: EventChoice?, _ rule: Rule, _ place: Explanation.Place, path: PathBytes, sight: Snapshot?,
        isKnown: Bool, now: Timestamp
    ) {
        var kind = isKnown ? EventKind.modified : .created
        if isKnown, sight == nil { kind = .deleted }
        var changed: [String] = []
        ground = isKnown ? .known : .unknown
        if let choice {
            (kind, changed) = (choice.kind, choice.changed)
            ground = .asked
        } else if !rule.events.takes(kind), let first = rule.events.kinds.first(where: { !$0.isLifecycle }) {
            if first != kind { ground = .only }
            kind = first
            changed = EventChoice.changes(of: rule.events, kind)
        }
        var snapshot = Snapshot.unseen
        snapshot.type = FileType.allCases.first(where: rule.types.contains) ?? .file
        event = FileEvent(
            kind: kind, path: path, root: place.root, snapshot: sight ?? snapshot, changed: changed, origin: .live,
            time: now)
    }
}

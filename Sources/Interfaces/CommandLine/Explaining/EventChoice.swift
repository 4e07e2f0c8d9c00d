import FileEvents
import Rules
import System

/// The event that `alight explain --event` names.
struct EventChoice: Hashable {
    /// As it was written.
    var word: String
    var kind: EventKind
    /// What of the file has changed, for the narrower words.
    var changed: [String]

    /// Reads a word; nil if it is none of a single event that happens to a path.
    init?(_ word: String) {
        guard let mask = EventMask(word: word), mask.isDisjoint(with: .lifecycle), mask.kinds.count == 1,
            let kind = mask.kinds.first
        else { return nil }
        self.word = word
        self.kind = kind
        changed = Self.changes(of: mask, kind)
    }

    /// What changes at an event of a mask that asks for parts of a kind alone.
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

    /// The words that can be given.
    static var words: [String] { EventMask.words.filter { EventChoice($0) != nil } }
}

/// What a rule would be told of a path next.
struct NextEvent {
    enum Ground: Hashable {
        case asked
        /// The journal does not know the path.
        case unknown
        case known
        /// It is neither, but the rule is told of nothing else.
        case only
    }

    var event: FileEvent
    var ground: Ground

    /// Works out the event.
    ///
    /// - Parameters:
    ///   - choice: What was asked for; nil for what would happen next.
    ///   - rule: The rule, which takes the path by name.
    ///   - place: Where it finds the path.
    ///   - path: The path that it is told of.
    ///   - sight: What is there.
    ///   - isKnown: Whether the journal has it that the rule knows the path.
    ///   - now: The present.
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

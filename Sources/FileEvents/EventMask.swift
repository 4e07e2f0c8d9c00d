/// The set of kinds that a rule asks for.
public struct EventMask: OptionSet, Hashable, Sendable {
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    public static let created = EventMask(rawValue: 1 << 0)
    public static let modified = EventMask(rawValue: 1 << 1)
    public static let deleted = EventMask(rawValue: 1 << 2)
    public static let moved = EventMask(rawValue: 1 << 3)
    public static let attributes = EventMask(rawValue: 1 << 4)

    /// The mask of one kind.
    public init(_ kind: EventKind) {
        switch kind {
        case .created: self = .created
        case .modified: self = .modified
        case .deleted: self = .deleted
        case .moved: self = .moved
        case .attributes: self = .attributes
        }
    }

    /// The mask that a word of a rules file stands for; nil for an unknown word.
    ///
    /// inotify(7) names are understood. They stand for what their users mean by
    /// them, not for the kernel event: `IN_CLOSE_WRITE` and `IN_MOVED_TO` both
    /// mean "a complete file is there".
    public init?(word: String) {
        if let kind = EventKind(rawValue: word) {
            self.init(kind)
            return
        }
        switch word {
        case "IN_CREATE": self = .created
        case "IN_CLOSE_WRITE": self = [.created, .modified]
        case "IN_MODIFY": self = .modified
        case "IN_DELETE": self = .deleted
        case "IN_MOVED_TO": self = [.created, .modified, .moved]
        case "IN_MOVED_FROM": self = [.deleted, .moved]
        case "IN_MOVE": self = [.created, .modified, .deleted, .moved]
        case "IN_ATTRIB": self = .attributes
        default: return nil
        }
    }

    /// The words that a rules file may use, for messages.
    public static var words: [String] { EventKind.allCases.map(\.rawValue) }

    /// The kinds in the mask, in their fixed order.
    public var kinds: [EventKind] { EventKind.allCases.filter { contains(EventMask($0)) } }
}

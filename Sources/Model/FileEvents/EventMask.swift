/// The set of events that a rule or an observer requests.
public struct EventMask: OptionSet, Hashable, Sendable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    public static let created = EventMask(rawValue: 1 << 0)
    public static let modified = EventMask(rawValue: 1 << 1)
    public static let deleted = EventMask(rawValue: 1 << 2)
    public static let moved = EventMask(rawValue: 1 << 3)
    public static let attributes = EventMask(rawValue: 1 << 4)
    public static let arriving = EventMask(rawValue: 1 << 5)

    /// `modified` with a larger size.
    public static let extended = EventMask(rawValue: 1 << 6)
    /// `modified` with a smaller size.
    public static let truncated = EventMask(rawValue: 1 << 7)
    /// `modified` with the same size.
    public static let overwritten = EventMask(rawValue: 1 << 8)

    /// `attributes` with a changed mode; the following members have the same form.
    public static let mode = EventMask(rawValue: 1 << 9)
    public static let uid = EventMask(rawValue: 1 << 10)
    public static let gid = EventMask(rawValue: 1 << 11)
    public static let nlink = EventMask(rawValue: 1 << 12)
    public static let mtime = EventMask(rawValue: 1 << 13)
    public static let xattr = EventMask(rawValue: 1 << 14)

    public static let scanStarted = EventMask(rawValue: 1 << 15)
    public static let scanEnded = EventMask(rawValue: 1 << 16)
    public static let overflow = EventMask(rawValue: 1 << 17)
    public static let unmounted = EventMask(rawValue: 1 << 18)
    public static let rootGone = EventMask(rawValue: 1 << 19)
    public static let rootBack = EventMask(rawValue: 1 << 20)

    public static let opened = EventMask(rawValue: 1 << 21)
    public static let accessed = EventMask(rawValue: 1 << 22)
    public static let closed = EventMask(rawValue: 1 << 23)

    /// All events about the content of a known path.
    public static let content: EventMask = [.modified, .extended, .truncated, .overwritten]
    /// All events about attributes.
    public static let anyAttribute: EventMask = [.attributes, .mode, .uid, .gid, .nlink, .mtime, .xattr]
    /// All events about the watching of a root.
    public static let lifecycle: EventMask = [.scanStarted, .scanEnded, .overflow, .unmounted, .rootGone, .rootBack]
    /// All events that are passed on as the kernel reports them.
    public static let raw: EventMask = [.opened, .accessed, .closed]
    /// `created modified deleted moved attributes`.
    public static let differences: EventMask = [.created, .modified, .deleted, .moved, .attributes]

    /// The valid words in a rules file, one for each member above, in the order of their bits.
    public static let words = [
        "created", "modified", "deleted", "moved", "attributes", "arriving", "extended", "truncated", "overwritten",
        "attributes.mode", "attributes.uid", "attributes.gid", "attributes.nlink", "attributes.mtime",
        "attributes.xattr", "scan_begin", "scan_end", "overflow", "unmounted", "root_gone", "root_back", "opened",
        "accessed", "closed",
    ]

    /// The inotify(7) names.
    ///
    /// Each is mapped to what its users expect, not to the kernel event.
    private static let inotifyTable: [(word: String, mask: EventMask)] = [
        ("IN_CREATE", .created), ("IN_CLOSE_WRITE", [.created, .modified]), ("IN_MODIFY", .modified),
        ("IN_DELETE", .deleted), ("IN_MOVED_TO", [.created, .modified, .moved]), ("IN_MOVED_FROM", [.deleted, .moved]),
        ("IN_MOVE", [.created, .modified, .deleted, .moved]), ("IN_ATTRIB", .attributes), ("IN_OPEN", .opened),
        ("IN_ACCESS", .accessed), ("IN_CLOSE_NOWRITE", .closed), ("IN_CLOSE", [.created, .modified, .closed]),
        ("IN_Q_OVERFLOW", .overflow), ("IN_UNMOUNT", .unmounted), ("IN_DELETE_SELF", .rootGone),
        ("IN_MOVE_SELF", .rootGone),
    ]

    /// Creates the mask of a whole kind.
    public init(_ kind: EventKind) {
        switch kind {
        case .created: self = .created
        case .modified: self = .modified
        case .deleted: self = .deleted
        case .moved: self = .moved
        case .attributes: self = .attributes
        case .arriving: self = .arriving
        case .scanStarted: self = .scanStarted
        case .scanEnded: self = .scanEnded
        case .overflow: self = .overflow
        case .unmounted: self = .unmounted
        case .rootGone: self = .rootGone
        case .rootBack: self = .rootBack
        case .opened: self = .opened
        case .accessed: self = .accessed
        case .closed: self = .closed
        }
    }

    /// Creates the mask of a word in a rules file; nil for an unknown word.
    ///
    /// inotify(7) names are accepted: `IN_CLOSE_WRITE` and `IN_MOVED_TO` both mean "a file is complete".
    public init?(word: String) {
        if let bit = Self.words.firstIndex(of: word) {
            self.init(rawValue: 1 << UInt32(bit))
        } else {
            guard let entry = Self.inotifyTable.first(where: { $0.word == word }) else { return nil }
            self = entry.mask
        }
    }

    /// The valid inotify(7) names in a rules file, for messages.
    public static var inotifyWords: [String] { inotifyTable.map(\.word) }

    /// Whether the mask contains an event of this kind with these changes.
    public func takes(_ kind: EventKind, changed: [String] = []) -> Bool {
        let whole = EventMask(kind)
        if contains(whole) { return true }
        let narrow = Self.events(of: kind).subtracting(whole)
        guard !isDisjoint(with: narrow) else { return false }
        return changed.contains { word in
            let name = word.hasPrefix("xattr:") ? "xattr" : word
            let mask = EventMask(word: kind == .attributes ? "attributes.\(name)" : name) ?? []
            return !isDisjoint(with: mask.intersection(narrow))
        }
    }

    /// The kinds with at least one event in the mask, in a fixed order.
    public var kinds: [EventKind] { EventKind.allCases.filter { !isDisjoint(with: Self.events(of: $0)) } }

    /// The whole kind and its narrower events.
    private static func events(of kind: EventKind) -> EventMask {
        switch kind {
        case .modified: .content
        case .attributes: .anyAttribute
        default: EventMask(kind)
        }
    }
}

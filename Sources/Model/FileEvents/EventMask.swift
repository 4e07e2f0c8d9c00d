import System

/// The set of events that a rule or an observer asks for.
public struct EventMask: OptionSet, Hashable, Sendable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    public static let created = EventMask(rawValue: 1 << 0)
    public static let modified = EventMask(rawValue: 1 << 1)
    public static let deleted = EventMask(rawValue: 1 << 2)
    public static let moved = EventMask(rawValue: 1 << 3)
    public static let attributes = EventMask(rawValue: 1 << 4)
    public static let arriving = EventMask(rawValue: 1 << 5)

    /// `modified`, when the file became longer.
    public static let extended = EventMask(rawValue: 1 << 6)
    /// `modified`, when the file became shorter.
    public static let truncated = EventMask(rawValue: 1 << 7)
    /// `modified`, when the file has the size it had.
    public static let overwritten = EventMask(rawValue: 1 << 8)

    /// `attributes`, when the mode changed; and so on.
    public static let mode = EventMask(rawValue: 1 << 9)
    public static let uid = EventMask(rawValue: 1 << 10)
    public static let gid = EventMask(rawValue: 1 << 11)
    public static let nlink = EventMask(rawValue: 1 << 12)
    public static let mtime = EventMask(rawValue: 1 << 13)
    public static let xattr = EventMask(rawValue: 1 << 14)

    public static let scanBegan = EventMask(rawValue: 1 << 15)
    public static let scanEnded = EventMask(rawValue: 1 << 16)
    public static let overflow = EventMask(rawValue: 1 << 17)
    public static let unmounted = EventMask(rawValue: 1 << 18)
    public static let rootGone = EventMask(rawValue: 1 << 19)
    public static let rootBack = EventMask(rawValue: 1 << 20)

    public static let opened = EventMask(rawValue: 1 << 21)
    public static let accessed = EventMask(rawValue: 1 << 22)
    public static let closed = EventMask(rawValue: 1 << 23)

    /// Everything that tells of content of a known path.
    public static let content: EventMask = [.modified, .extended, .truncated, .overwritten]
    /// Everything that tells of attributes.
    public static let anyAttribute: EventMask = [.attributes, .mode, .uid, .gid, .nlink, .mtime, .xattr]
    /// Everything that tells of the watching.
    public static let lifecycle: EventMask = [.scanBegan, .scanEnded, .overflow, .unmounted, .rootGone, .rootBack]
    /// Everything that is passed on as the kernel tells it.
    public static let raw: EventMask = [.opened, .accessed, .closed]
    /// `created modified deleted moved attributes`.
    public static let differences: EventMask = [.created, .modified, .deleted, .moved, .attributes]

    /// The words and what they stand for, in their fixed order.
    private static let table: [(word: String, mask: EventMask)] = [
        ("created", .created), ("modified", .modified), ("deleted", .deleted), ("moved", .moved),
        ("attributes", .attributes), ("arriving", .arriving), ("extended", .extended), ("truncated", .truncated),
        ("overwritten", .overwritten), ("attributes.mode", .mode), ("attributes.uid", .uid),
        ("attributes.gid", .gid), ("attributes.nlink", .nlink), ("attributes.mtime", .mtime),
        ("attributes.xattr", .xattr), ("scan_begin", .scanBegan), ("scan_end", .scanEnded), ("overflow", .overflow),
        ("unmounted", .unmounted), ("root_gone", .rootGone), ("root_back", .rootBack), ("opened", .opened),
        ("accessed", .accessed), ("closed", .closed),
    ]

    /// inotify(7) names; they stand for what their users mean by them, not for the kernel event.
    private static let inotifyTable: [(word: String, mask: EventMask)] = [
        ("IN_CREATE", .created), ("IN_CLOSE_WRITE", [.created, .modified]), ("IN_MODIFY", .modified),
        ("IN_DELETE", .deleted), ("IN_MOVED_TO", [.created, .modified, .moved]), ("IN_MOVED_FROM", [.deleted, .moved]),
        ("IN_MOVE", [.created, .modified, .deleted, .moved]), ("IN_ATTRIB", .attributes), ("IN_OPEN", .opened),
        ("IN_ACCESS", .accessed), ("IN_CLOSE_NOWRITE", .closed), ("IN_CLOSE", [.created, .modified, .closed]),
        ("IN_Q_OVERFLOW", .overflow), ("IN_UNMOUNT", .unmounted), ("IN_DELETE_SELF", .rootGone),
        ("IN_MOVE_SELF", .rootGone),
    ]

    /// The mask of one kind, as a whole.
    public init(_ kind: EventKind) {
        switch kind {
        case .created: self = .created
        case .modified: self = .modified
        case .deleted: self = .deleted
        case .moved: self = .moved
        case .attributes: self = .attributes
        case .arriving: self = .arriving
        case .scanBegan: self = .scanBegan
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

    /// The mask that a word of a rules file stands for; nil for an unknown word.
    ///
    /// inotify(7) names are understood: `IN_CLOSE_WRITE` and `IN_MOVED_TO` both
    /// mean "a complete file is there".
    public init?(word: String) {
        guard let entry = (Self.table + Self.inotifyTable).first(where: { $0.word == word }) else { return nil }
        self = entry.mask
    }

    /// The words that a rules file may use, for messages.
    public static var words: [String] { table.map(\.word) }

    /// The inotify(7) names that a rules file may use, for messages.
    public static var inotifyWords: [String] { inotifyTable.map(\.word) }

    /// Whether an event of this kind, with these words of what changed, is asked for.
    public func takes(_ kind: EventKind, changed: [String] = []) -> Bool {
        if contains(EventMask(kind)) { return true }
        let narrow: EventMask
        switch kind {
        case .modified: narrow = [.extended, .truncated, .overwritten]
        case .attributes: narrow = [.mode, .uid, .gid, .nlink, .mtime, .xattr]
        default: return false
        }
        return changed.contains { word in
            let name = word.hasPrefix("xattr:") ? "xattr" : word
            let mask = EventMask(word: kind == .attributes ? "attributes.\(name)" : name) ?? []
            return !mask.isEmpty && !isDisjoint(with: mask.intersection(narrow))
        }
    }

    /// The kinds of which anything is asked for, in their fixed order.
    public var kinds: [EventKind] {
        EventKind.allCases.filter { kind in
            switch kind {
            case .modified: !isDisjoint(with: .content)
            case .attributes: !isDisjoint(with: .anyAttribute)
            default: contains(EventMask(kind))
            }
        }
    }
}

public import System

/// Says that a path may have changed: look at it.
///
/// Nothing else about it is promised. A hint that is doubled, late or wrong does no harm.
public struct Hint: Sendable, Hashable {
    /// What gave rise to the hint.
    ///
    /// Several hints of one path merge by union.
    public struct Signs: OptionSet, Sendable, Hashable {
        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }

        /// Content was written through a descriptor.
        ///
        /// A write through mmap gives no such sign, only `closed`.
        public static let written = Signs(rawValue: 1 << 0)
        /// A descriptor that was open for writing is closed.
        public static let closed = Signs(rawValue: 1 << 1)
        /// The name appeared: made, linked, or renamed to.
        public static let appeared = Signs(rawValue: 1 << 2)
        /// The name went: deleted, or renamed away.
        public static let vanished = Signs(rawValue: 1 << 3)
        /// Mode, owner, times, link count or extended attributes changed.
        public static let attributes = Signs(rawValue: 1 << 4)
        /// The path was found by listing its folder.
        public static let listed = Signs(rawValue: 1 << 5)
        /// A folder was renamed away or lost: everything known below it is dirty too.
        public static let subtree = Signs(rawValue: 1 << 6)
        /// The name came from, or went to, another place by a rename; with `appeared` it is complete at once.
        public static let moved = Signs(rawValue: 1 << 7)
        /// Polling found the path changed; the kernel does not tell of it.
        public static let polled = Signs(rawValue: 1 << 8)
        /// Opened, read, and closed without a write: only where raw events are asked for.
        public static let opened = Signs(rawValue: 1 << 9)
        public static let accessed = Signs(rawValue: 1 << 10)
        public static let closedUnwritten = Signs(rawValue: 1 << 11)

        /// What is told of a file that nobody changes.
        public static let bare: Signs = [.opened, .accessed, .closedUnwritten]
        /// What is told of a file that may have another content now.
        public static let content: Signs = [.appeared, .written, .closed]
    }

    public var path: PathBytes
    public var signs: Signs
    public var origin: EventOrigin

    public init(path: PathBytes, signs: Signs = .content, origin: EventOrigin = .live) {
        self.path = path
        self.signs = signs
        self.origin = origin
    }

    /// Takes in a later hint of the same path.
    package mutating func merge(_ later: Hint) {
        signs.formUnion(later.signs)
        if later.origin == .live { origin = .live }
    }
}

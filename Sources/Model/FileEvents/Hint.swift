public import System

/// A notice that a path may have changed and must be checked.
///
/// It promises nothing else. A duplicate, late or wrong hint is harmless.
public struct Hint: Sendable, Hashable {
    /// The signs that caused the hint.
    ///
    /// Several hints for one path are merged by union.
    public struct Signs: OptionSet, Sendable, Hashable {
        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }

        /// Content was written through a descriptor.
        ///
        /// A write through mmap has no such sign, only `closed`.
        public static let written = Signs(rawValue: 1 << 0)
        /// A descriptor that was open for writing was closed.
        public static let closed = Signs(rawValue: 1 << 1)
        /// The name appeared: created, linked, or renamed to.
        public static let appeared = Signs(rawValue: 1 << 2)
        /// The name disappeared: deleted, or renamed away.
        public static let vanished = Signs(rawValue: 1 << 3)
        /// Mode, owner, times, link count or extended attributes changed.
        public static let attributes = Signs(rawValue: 1 << 4)
        /// A listing of the directory found the path.
        public static let listed = Signs(rawValue: 1 << 5)
        /// A directory was renamed away or lost: all known paths below it are dirty too.
        public static let subtree = Signs(rawValue: 1 << 6)
        /// A rename moved the name from or to another place; with `appeared`, its content is complete at once.
        public static let moved = Signs(rawValue: 1 << 7)
        /// Polling found the change; the kernel does not report it.
        public static let polled = Signs(rawValue: 1 << 8)
        /// Opened, read, and closed without a write: only if raw events are requested.
        public static let opened = Signs(rawValue: 1 << 9)
        public static let accessed = Signs(rawValue: 1 << 10)
        public static let closedUnwritten = Signs(rawValue: 1 << 11)

        /// The signs of a file that is not changed.
        public static let bare: Signs = [.opened, .accessed, .closedUnwritten]
        /// The signs of a file whose content may have changed.
        public static let content: Signs = [.appeared, .written, .closed]
    }

    public var path: PathBytes
    public var signs: Signs
    public var origin: EventOrigin
    /// The number of the request that the watcher answers by this hint; 0 if it is not an answer.
    package var request: UInt32 = 0
    /// The file that the initial listing found, if it was inspected; nil once the path may have changed.
    package var found: FoundFile?

    public init(path: PathBytes, signs: Signs = .content, origin: EventOrigin = .live) {
        (self.path, self.signs, self.origin) = (path, signs, origin)
    }

    /// Merges a later hint for the same path.
    package mutating func merge(_ later: Hint) {
        signs.formUnion(later.signs)
        if later.origin == .live { origin = .live }
        if later.request != 0 { request = later.request }
        found = nil
    }
}

/// A file as a listing found it, in a directory that was watched before.
package struct FoundFile: Sendable, Hashable {
    /// The metadata, with extended attributes if the scope asks for them.
    package let snapshot: Snapshot
    /// The root below which no link was followed.
    package let root: PathBytes
    /// Whether a process can still write to it; nil if that was not determined.
    package let writers: DiskProbe.Holders?

    package init(_ snapshot: Snapshot, below root: PathBytes, writers: DiskProbe.Holders?) {
        (self.snapshot, self.root, self.writers) = (snapshot, root, writers)
    }
}

extension Snapshot {
    /// Whether it is a file that has changed so recently that a process may be about to write more of it.
    package func isRecent(asOf now: Timestamp) -> Bool {
        type == .file && changed > now.advanced(by: .zero - .seconds(60))
    }
}

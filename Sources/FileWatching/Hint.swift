package import FileEvents

/// Says that a path is dirty: look at it.
///
/// Nothing else about it is promised.
package struct Hint: Sendable, Hashable {
    /// What gave rise to the hint.
    ///
    /// Several hints of one path merge by union.
    package struct Signs: OptionSet, Sendable, Hashable {
        package let rawValue: UInt16
        package init(rawValue: UInt16) { self.rawValue = rawValue }

        /// Content was written through a descriptor.
        ///
        /// A write through mmap gives no such sign, only `closed`.
        package static let written = Signs(rawValue: 1 << 0)
        /// A descriptor that was open for writing is closed.
        package static let closed = Signs(rawValue: 1 << 1)
        /// The name appeared: made, linked, or renamed to.
        package static let appeared = Signs(rawValue: 1 << 2)
        /// The name went: deleted, or renamed away.
        package static let vanished = Signs(rawValue: 1 << 3)
        /// Mode, owner, times, link count or extended attributes changed.
        package static let attributes = Signs(rawValue: 1 << 4)
        /// The path was found by listing its folder.
        package static let listed = Signs(rawValue: 1 << 5)
        /// A folder was renamed away or lost: everything known below it is dirty too.
        package static let subtree = Signs(rawValue: 1 << 6)
    }

    package var path: PathBytes
    package var signs: Signs
    package var origin: EventOrigin

    package init(path: PathBytes, signs: Signs, origin: EventOrigin) {
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

/// What a watcher tells besides hints.
package enum WatchReport: Sendable, Hashable {
    /// Every folder that exists is watched and listed; so many watches are in use.
    case ready(folders: Int)
    /// The kernel's queue was full and events are missing; all roots are being listed again.
    case overflow
    /// The listing after an overflow or on demand is done.
    case rescanned
    /// A root does not exist (any more); the nearest existing folder above it is watched instead.
    case rootMissing(PathBytes, watching: PathBytes)
    /// A root that was missing is there, and watched.
    case rootAppeared(PathBytes)
    /// A folder can't be watched or listed: what happens in it is not seen.
    case failure(WatchError)
}

package import FileEvents

/// Says that a path is dirty: look at it.
///
/// Nothing else about it is promised. Public only because its signs are.
public struct Hint: Sendable, Hashable {
    /// What gave rise to the hint.
    ///
    /// Several hints of one path merge by union. Public, so that others have the operations of sets inline.
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
        /// The name came from, or went to, another place by a rename.
        public static let moved = Signs(rawValue: 1 << 7)
        /// Polling found the path changed; the kernel does not tell of it.
        public static let polled = Signs(rawValue: 1 << 8)
        /// Opened, read, and closed without a write: only with ``WatchScope/isRaw``.
        public static let opened = Signs(rawValue: 1 << 9)
        public static let accessed = Signs(rawValue: 1 << 10)
        public static let closedUnwritten = Signs(rawValue: 1 << 11)

        /// What is told of a file that nobody changes.
        public static let bare: Signs = [.opened, .accessed, .closedUnwritten]
        /// What is told of a file that may have another content now.
        public static let content: Signs = [.appeared, .written, .closed]
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
    /// Every folder that exists is watched or polled, and listed; so many folders there are.
    case ready(folders: Int)
    /// The first listing takes long: so many folders are listed by now.
    case progress(folders: Int)
    /// The kernel's queue was full and events are missing; all roots are being listed again.
    case overflow
    /// The scope of that number is watched from here on; what was being listed is begun anew.
    case changed(number: Int)
    /// The listing of a root begins, for this reason.
    case listing(PathBytes, EventOrigin)
    /// The listing of a root is done, or was cut short since the root went; all hints of it are in the queue.
    case listed(PathBytes, EventOrigin)
    /// The listing of all roots after an overflow or on demand is done.
    case rescanned
    /// A root does not exist (any more); the nearest existing folder above it is watched instead.
    case rootMissing(PathBytes, watching: PathBytes)
    /// A root that was missing is there, and watched.
    case rootAppeared(PathBytes)
    /// The file system of a watched folder is gone, and its files are out of sight; `point` is where it was mounted.
    case unmounted(PathBytes, point: PathBytes)
    /// Another file system is mounted over a watched folder, or over one above it.
    case mounted(PathBytes)
    /// A folder and all below it are polled.
    case polling(PathBytes, PollingReason, every: Duration)
    /// The limit of watches or instances is reached: what has no watch is polled.
    ///
    /// Told when the first listing is done and so the need is known, and again, ever more rarely, when it has grown.
    case limited(WatchShortage)
    /// The kernel does not say who does what on the file system of a folder, though somebody asks.
    case authorsUntold(PathBytes, errno: Int32)
    /// A folder can't be watched or listed: what happens in it is not seen.
    case failure(WatchError)
}

/// Why a folder is polled.
package enum PollingReason: Sendable, Hashable {
    /// The rule says so.
    case asked
    /// The kernel does not tell of all that happens on this type of file system, such as `nfs`.
    case fileSystem(String)
}

/// A limit of inotify that is too low for what is to be watched.
package struct WatchShortage: Sendable, Hashable {
    package var limit: InotifyLimit
    /// The value that would do for this program, beside the watches that others of the user hold.
    package var needed: Int
    /// Folders that are polled for want of a watch.
    package var polled: Int

    package init(limit: InotifyLimit, needed: Int, polled: Int) {
        self.limit = limit
        self.needed = needed
        self.polled = polled
    }
}

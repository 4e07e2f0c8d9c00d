public import System

/// What happened to a path, told once, after it has settled; or to the watching.
///
/// The raw values are the words of rules files and of all JSON.
public enum EventKind: String, Sendable, Hashable, CaseIterable {
    /// A name appeared and its content is complete.
    case created
    /// The content of a known path changed, or another file took its place.
    case modified
    /// A known path is gone.
    case deleted
    /// A known file has another name now.
    case moved
    /// Mode, owner, link count, times or extended attributes changed, not the content.
    case attributes
    /// A name appeared, and its content may not be complete: told at first sight.
    case arriving
    /// A listing of a root begins; the path is the root, as for all kinds that follow up to `rootBack`.
    case scanBegan = "scan_begin"
    /// Everything that the listing found has been told, but for files that are still being written to.
    case scanEnded = "scan_end"
    /// The kernel's queue was full; what is missing is found by the listing that follows.
    case overflow
    /// A file system in a root, or that of the root, was unmounted: its files are out of sight, not deleted.
    ///
    /// The path is the mount point, which may be above the root.
    case unmounted
    /// A root that was there does not exist any more: what was in it is out of sight, not deleted.
    case rootGone = "root_gone"
    /// A root that was missing is there.
    case rootBack = "root_back"
    /// A file was opened; told as the kernel does, neither settled nor compared.
    case opened
    /// A file was read; likewise.
    case accessed
    /// A file that was open for reading alone was closed; likewise.
    case closed

    /// Whether the event tells of the watching of a root, not of a path that was found in it.
    public var isLifecycle: Bool {
        switch self {
        case .scanBegan, .scanEnded, .overflow, .unmounted, .rootGone, .rootBack: true
        default: false
        }
    }

    /// Whether the event passes on what the kernel said, without a look at the disk.
    public var isRaw: Bool { self == .opened || self == .accessed || self == .closed }

    /// Whether the event reports a difference between what the action has received and the disk.
    package var isDifference: Bool { EventMask.differences.takes(self) }
}

/// How Alight came to look at the path.
public enum EventOrigin: String, Sendable, Hashable {
    /// The kernel told of it.
    case live
    /// It was found at the start.
    case scan
    /// It was found by a comparison after an overflow, or on demand.
    case rescan
    /// It was found by polling.
    case poll
    /// A person named it.
    case manual
}

/// The difference between what was last accepted of a path and the disk.
public struct FileEvent: Hashable, Sendable {
    public var kind: EventKind
    public var path: PathBytes
    /// The watched folder, above the first wildcard of the glob.
    public var root: PathBytes
    /// The former path of a moved file.
    public var from: PathBytes?
    /// The paths that it names, the former one of a moved file first.
    package var paths: [PathBytes] { [from, path].compactMap(\.self) }
    /// The present facts; of a path that is gone the last known ones.
    ///
    /// Of a root that was never seen they are ``Snapshot/unseen``.
    public var snapshot: Snapshot
    /// The facts accepted before; nil for a path that was unknown.
    public var before: Snapshot? {
        get { former?.value }
        set { former = newValue.map(Box.init) }
    }
    /// ``before``, apart from the event, which most often has none: very many may wait.
    package var former: Box<Snapshot>?
    /// What differs: `extended`, `truncated`, `overwritten`; `mode`, `uid`, `gid`, `nlink`, `mtime`, `xattr:NAME`.
    public var changed: [String]
    /// Whether the path holds another file than before.
    public var isReplaced: Bool
    /// Whether the file came here, or went from here, by a rename from or to a place that is not looked at.
    public var isByMove: Bool
    /// The other names under which the file is known, of a name that was linked.
    public var sameAs: [PathBytes]
    /// How many entries a folder has; nil for all else, and when it can't be listed.
    public var children: Int?
    /// The text that was added, for rules that follow a file.
    public var tail: TailText? {
        get { addition?.value }
        set { addition = newValue.map(Box.init) }
    }
    /// ``tail``, likewise.
    package var addition: Box<TailText>?
    public var origin: EventOrigin
    /// When the difference was established.
    public var time: Timestamp
    /// Who did it, for rules that ask.
    package var author = Author.notAsked

    public init(
        kind: EventKind, path: PathBytes, root: PathBytes, from: PathBytes? = nil, snapshot: Snapshot,
        before: Snapshot? = nil, changed: [String] = [], isReplaced: Bool = false, isByMove: Bool = false,
        sameAs: [PathBytes] = [], children: Int? = nil, tail: TailText? = nil, origin: EventOrigin = .live,
        time: Timestamp
    ) {
        self.kind = kind
        self.path = path
        self.root = root
        self.from = from
        self.snapshot = snapshot
        former = before.map(Box.init)
        self.changed = changed
        self.isReplaced = isReplaced
        self.isByMove = isByMove
        self.sameAs = sameAs
        self.children = children
        addition = tail.map(Box.init)
        self.origin = origin
        self.time = time
    }
}

/// What was added to a file that is followed.
public struct TailText: Hashable, Sendable {
    /// Where in the file the text begins, in bytes.
    public var offset: UInt64
    /// Whole characters, if the file is UTF-8: an incomplete one at the end waits for its rest.
    public var bytes: [UInt8]
    /// Whether the file was cut or replaced, so that the text does not continue what came before.
    public var isReset: Bool
    /// Bytes of the file behind the text that were there already, and follow with the next event.
    public var remaining: UInt64

    public init(offset: UInt64, bytes: [UInt8], isReset: Bool = false, remaining: UInt64 = 0) {
        self.offset = offset
        self.bytes = bytes
        self.isReset = isReset
        self.remaining = remaining
    }
}

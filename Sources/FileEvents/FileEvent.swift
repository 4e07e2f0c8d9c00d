/// What happened to a path, told once, after it has settled.
public enum EventKind: String, Sendable, Hashable, CaseIterable {
    /// A name appeared and its content is complete.
    case created
    /// The content of a known path changed, or another file took its place.
    case modified
    /// A known path is gone.
    case deleted
    /// A known file has another name now.
    case moved
    /// Mode, owner, link count or times changed, not the content.
    case attributes
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
    /// The present facts; of a deleted path the last known ones.
    public var snapshot: Snapshot
    /// The facts accepted before; nil for a path that was unknown.
    public var before: Snapshot?
    /// What differs: words like `extended`, `truncated`, `overwritten`, `mode` and `uid`.
    public var changed: [String]
    /// Whether the path holds another file than before.
    public var isReplaced: Bool
    public var origin: EventOrigin
    /// When the difference was established.
    public var time: Timestamp

    public init(
        kind: EventKind, path: PathBytes, root: PathBytes, from: PathBytes? = nil, snapshot: Snapshot,
        before: Snapshot? = nil, changed: [String] = [], isReplaced: Bool = false, origin: EventOrigin = .live,
        time: Timestamp
    ) {
        self.kind = kind
        self.path = path
        self.root = root
        self.from = from
        self.snapshot = snapshot
        self.before = before
        self.changed = changed
        self.isReplaced = isReplaced
        self.origin = origin
        self.time = time
    }
}

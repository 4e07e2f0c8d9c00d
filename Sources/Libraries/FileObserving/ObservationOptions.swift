@_exported public import FileEvents
@_exported public import System

/// The way changes are detected.
public typealias ObservationBackend = Backend

/// The paths that an observer reports, the events to report, and their timing.
///
/// A value: a copy is independent, and changes do not affect an observer that was
/// already created.
public struct ObservationOptions: Sendable {
    // MARK: Paths

    /// Patterns relative to each root, at least one of which has to match; `**` matches everything below.
    ///
    /// `*` does not cross directories, `{a,b}` are alternatives, extensions are compared
    /// case-insensitively. Directories that no pattern reaches are not watched. The
    /// directories before the first wildcard belong to the root that is watched and that
    /// events name: `logs/*.txt` in `/srv` has the root `/srv/logs`. A single file is a
    /// pattern without wildcards; see ``System/PathBytes/escapedForGlob``.
    public var globs: [PathBytes] = ["**"]
    /// Patterns relative to the root; an excluded directory excludes everything below it, and is not watched.
    public var excludes: [PathBytes] = []
    /// The number of directory levels below the root that are entered; 0 for the root alone, nil for all.
    public var depth: Int?
    /// Whether wildcards match names with a leading dot.
    public var hidden = false
    /// The types of files that are reported.
    public var types: Set<FileType> = [.file]
    /// The events that are reported; by default all differences, and events of the watching itself.
    ///
    /// Attributes cost one or two additional system calls for each check of a path.
    public var events: EventMask = [.differences, .lifecycle]

    // MARK: Timing

    /// The time for which nothing may happen to a path before it is checked; nil for 2 s, and 5 s where it is polled.
    public var settle: Duration?
    /// Whether to wait for a file that a process can still write to, where the system can determine that.
    public var waitsForWriters = true
    /// The pause after each read of the kernel queue, which limits how often events of other paths wake a thread; nil
    /// for no added delay.
    package var rest: Duration?
    /// Whether to wait for a file that a process has a write lock on.
    public var waitsForLocks = false
    /// Equal samples that are required in addition; nil for none, and for two where the root is polled.
    public var stable: StableRounds?
    /// The time after which a path that never settles is reported as it is; nil waits indefinitely.
    public var maximumWait: Duration?
    /// Whether a matching directory is one unit with everything below it, reported when all of it has settled.
    ///
    /// Requires ``types`` to contain `directory`.
    public var isTree = false

    // MARK: Start

    /// Whether existing files are reported: `scan_begin`, then `created` with the origin `scan`, then `scan_end`.
    public var existing = false
    /// The behaviour when a root does not exist at the start of the observation; `fail` throws
    /// ``ObservationError/missingRoot(_:)``.
    public var missing = MissingRoot.wait
    /// The known state at the end of an earlier observation: changes since then are reported with the origin `scan`.
    public var resuming: ObservationSnapshot?

    // MARK: Detection

    /// The way the roots are watched: where the kernel does not report every change, `ObservationBackend.auto` polls.
    public var backend = ObservationBackend.auto
    /// The time between two polls, where a root is polled; at least 10 ms.
    public var pollInterval = Duration.seconds(10)
    /// Called with notices about the watching itself, on the observer's thread.
    ///
    /// It must not block for long: no events are delivered meanwhile.
    public var notify: (@Sendable (ObservationNotice) -> Void)?
    /// The source of hints; nil for the kernel.
    public var source: (any HintSource)?
    /// The clock that determines when paths settle.
    public var clock = ObservationClock.continuous

    /// Creates the default options, which match everything below the roots.
    public init() {}
}

/// The state of an observer at one time, to continue after a restart.
///
/// Encode it with any encoder. An observer with the same roots and patterns accepts
/// it as ``ObservationOptions/resuming``, and reports the changes since then with the
/// origin `scan`, between `scan_begin` and `scan_end`: created, modified, moved and
/// deleted, as if it had observed them.
public struct ObservationSnapshot: Sendable, Hashable, Codable {
    /// The known state of one path.
    public struct Entry: Sendable, Hashable, Codable {
        public var path: PathBytes
        public var snapshot: Snapshot

        public init(path: PathBytes, snapshot: Snapshot) {
            self.path = path
            self.snapshot = snapshot
        }
    }

    /// Each path once, directories before their contents.
    public var entries: [Entry]

    public init(entries: [Entry]) { self.entries = entries }
}

@_exported public import FileEvents
@_exported public import System

/// How the kernel is asked for changes.
public enum ObservationBackend: String, Sendable, Hashable, CaseIterable {
    /// By inotify where that sees every change, else by polling: on network and FUSE file systems, and beyond the
    /// limit of watches.
    case auto
    /// By inotify, whatever the file system.
    case inotify
    /// By looking again and again.
    case poll
}

/// What to do when a root does not exist.
public enum MissingRoot: String, Sendable, Hashable, CaseIterable {
    /// Wait until it appears; then what is in it is `created`.
    case wait
    /// Throw ``ObservationError/missingRoot(_:)`` at the start.
    case fail
    /// Make it, with the folders above it.
    case create
}

/// Rounds in which a file's identity, size and time have to be equal.
public struct StableRounds: Sendable, Hashable {
    /// How far apart two looks are.
    public var every: Duration
    /// How many looks have to agree with the one before; at least 1.
    public var rounds: Int

    public init(every: Duration = .seconds(1), rounds: Int = 2) {
        self.every = every
        self.rounds = rounds
    }
}

/// Which paths an observer tells of, what about them, and when.
///
/// A value: a copy is independent, and nothing changes for an observer that has
/// been made from it.
public struct ObservationOptions: Sendable {
    // MARK: Which paths

    /// Patterns relative to each root, of which one has to match; `**` is everything below.
    ///
    /// `*` stays in one folder, `{a,b}` are alternatives, extensions are compared
    /// without case. Folders that no pattern reaches are not watched. What stands in
    /// front of the first wildcard belongs to the root that is watched and that
    /// events name: `logs/*.txt` in `/srv` has the root `/srv/logs`. A single file is
    /// a pattern without wildcards; see ``FileEvents/PathBytes/escapedForGlob``.
    public var globs: [PathBytes] = ["**"]
    /// Patterns relative to the root; an excluded folder excludes all below it, and is not watched.
    public var excludes: [PathBytes] = []
    /// Folder levels below the root that are entered; 0 for the root alone, nil for all.
    public var depth: Int?
    /// Whether wildcards match names with a leading dot.
    public var hidden = false
    /// The kinds of things that are told of.
    public var types: Set<FileType> = [.file]
    /// What is told of them; by default all differences, and what happens to the watching.
    ///
    /// Asking for attributes costs a system call or two for each look at a path.
    public var events: EventMask = [.differences, .lifecycle]

    // MARK: When

    /// How long nothing may happen to a path before it is looked at; nil for 2 s, and 5 s where it is polled.
    public var settle: Duration?
    /// Whether a file that a process can still write to is waited for, where the system can tell.
    public var waitsForWriters = true
    /// How long the kernel's queue is left alone after each look, so that what happens beside what is observed wakes
    /// somebody that seldom at most; nil where it is not to cost time.
    package var rest: Duration?
    /// Whether a file that somebody holds a write lock on is waited for.
    public var waitsForLocks = false
    /// Equal looks that are asked for besides; nil for none, and for two where the root is polled.
    public var stable: StableRounds?
    /// After so long a path that never rests is told as it is; nil waits for ever.
    public var maximumWait: Duration?
    /// Whether a folder that matches is one unit with everything below it, told of when all of that rests.
    ///
    /// Wants ``types`` with `directory`.
    public var isTree = false

    // MARK: The start

    /// Whether what is there already is told: `scan_begin`, then `created` with the origin `scan`, then `scan_end`.
    public var existing = false
    /// What becomes of a root that does not exist when the observation begins.
    public var missing = MissingRoot.wait
    /// What was known at the end of an earlier observation: what changed since is told with the origin `scan`.
    public var resuming: ObservationSnapshot?

    // MARK: How

    /// How the roots are watched: where the kernel does not tell of everything, ``ObservationBackend/auto`` polls.
    public var backend = ObservationBackend.auto
    /// How long to rest between two looks, where a root is polled; at least 10 ms.
    public var pollInterval = Duration.seconds(10)
    /// Called with what is worth knowing about the watching itself, on the observer's thread.
    ///
    /// It must not block for long: nothing is told meanwhile.
    public var notify: (@Sendable (ObservationNotice) -> Void)?
    /// Where hints come from; nil for the kernel.
    public var source: (any HintSource)?
    /// The clock by which paths settle.
    public var clock = ObservationClock.continuous

    /// Makes the options that hold for everything below the roots.
    public init() {}
}

public import System

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

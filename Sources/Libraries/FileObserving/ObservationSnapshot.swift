import FileEvents
public import System

/// All that an observer knows at one moment, to continue after a restart.
///
/// Encode it with any encoder. Given as ``ObservationOptions/resuming`` to an
/// observer with the same roots and patterns, what changed meanwhile is told with
/// the origin `scan`, between `scan_begin` and `scan_end`: created, modified, moved
/// and deleted, as if it had been seen.
public struct ObservationSnapshot: Sendable, Hashable, Codable {
    /// What is known of one path.
    public struct Fact: Sendable, Hashable, Codable {
        public var path: PathBytes
        public var snapshot: Snapshot

        public init(path: PathBytes, snapshot: Snapshot) {
            self.path = path
            self.snapshot = snapshot
        }
    }

    /// Each path once, folders before what is in them.
    public var facts: [Fact]

    public init(facts: [Fact]) { self.facts = facts }
}

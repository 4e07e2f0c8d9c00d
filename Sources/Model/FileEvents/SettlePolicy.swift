package import System

/// The conditions under which a path counts as finished.
///
/// Where a value is nil, the default depends on how the root is watched: a polled
/// root is checked less often and can't be searched for writers, so it needs more
/// time.
package struct SettlePolicy: Sendable, Hashable {
    /// The reaction to a process that can still write to the file, or holds a write lock on it.
    package enum Gate: String, Sendable, Hashable, CaseIterable {
        case wait, ignore
    }

    /// The time for which nothing may happen to the path; zero for no delay.
    package var quiet: Duration?
    package var stable: StableRounds?
    package var writers: Gate
    package var locks: Gate
    /// The reaction to a companion that shows that the file is still being transferred, see ``PartialFile``.
    package var partial: Gate
    /// The time without a change after which a file counts as finished although a process has it open for writing or
    /// locked; nil waits until it is closed.
    package var whenHeld: Duration?
    /// The time after which a path that never settles is reported as it is; nil waits indefinitely.
    package var maximumWait: Duration?
    /// Whether a directory is one unit with everything below it.
    package var isTree: Bool

    package init(
        quiet: Duration? = nil, stable: StableRounds? = nil, writers: Gate = .wait, locks: Gate = .ignore,
        partial: Gate = .wait, whenHeld: Duration? = nil, maximumWait: Duration? = nil, isTree: Bool = false
    ) {
        (self.quiet, self.stable, self.writers, self.locks, self.partial) = (quiet, stable, writers, locks, partial)
        (self.whenHeld, self.maximumWait, self.isTree) = (whenHeld, maximumWait, isTree)
    }

    /// The quiet time where the kernel reports every change.
    package static let quietWhenWatched = Duration.seconds(2)
    /// The quiet time on a polled root.
    package static let quietWhenPolled = Duration.seconds(5)

    /// Returns the quiet time in effect for a path.
    package func quiet(isPolled: Bool) -> Duration {
        quiet ?? (isPolled ? Self.quietWhenPolled : Self.quietWhenWatched)
    }

    /// Whether to wait for a process that has a file open for writing or locked.
    package func waitsForHolder(of snapshot: Snapshot, at now: Timestamp) -> Bool {
        whenHeld.map { now.since(snapshot.changed) < $0 } ?? true
    }

    /// Returns the rounds in effect for a path; nil when none are required.
    package func stable(isPolled: Bool) -> StableRounds? { stable ?? (isPolled ? StableRounds() : nil) }
}

/// Rounds in which the identity, size and modification time of a file have to be equal.
public struct StableRounds: Sendable, Hashable {
    /// The time between two samples.
    public var every: Duration
    /// The number of samples that have to agree with the one before; at least 1.
    public var rounds: Int

    public init(every: Duration = .seconds(1), rounds: Int = 2) { (self.every, self.rounds) = (every, rounds) }
}

/// The handling of a change that has settled while an action runs for its path.
///
/// The raw values are the words in rules files.
package enum WhileBusy: String, Sendable, Hashable, CaseIterable {
    /// The path is compared when the action is finished: it runs once more, with the newest metadata.
    case coalesce
    /// The running action is stopped, and runs again with the newest metadata.
    case restart
}

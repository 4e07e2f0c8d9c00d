import FileEvents
package import System

/// What has to hold before a path counts as finished.
///
/// What is nil follows from how the root is watched: a polled one is looked at
/// less often and can't ask for writers, so it needs more patience.
package struct SettlePolicy: Sendable, Hashable {
    /// What to do while a process can still write to the file, or holds a write lock on it.
    package enum Gate: String, Sendable, Hashable, CaseIterable {
        case wait, ignore
    }

    /// Rounds in which identity, size and modification time have to be equal.
    package struct Rounds: Sendable, Hashable {
        /// How far apart two looks are.
        package var every: Duration
        /// How many looks have to agree with the one before; at least 1.
        package var rounds: Int

        package init(every: Duration = .seconds(1), rounds: Int = 2) {
            self.every = every
            self.rounds = rounds
        }
    }

    /// How long nothing may happen to the path; zero acts at once.
    package var quiet: Duration?
    package var stable: Rounds?
    package var writers: Gate
    package var locks: Gate
    /// What to do while a companion shows that the file is still being transferred, see ``PartialFile``.
    package var partial: Gate
    /// The time without a change after which a file counts as finished although a process has it open for writing or
    /// locked; nil waits until it is closed.
    package var whenHeld: Duration?
    /// After so long a path that never rests is told as it is; nil waits for ever.
    package var maximumWait: Duration?
    /// Whether a folder is one unit with everything below it.
    package var isTree: Bool

    package init(
        quiet: Duration? = nil, stable: Rounds? = nil, writers: Gate = .wait, locks: Gate = .ignore,
        partial: Gate = .wait, whenHeld: Duration? = nil, maximumWait: Duration? = nil, isTree: Bool = false
    ) {
        self.quiet = quiet
        self.stable = stable
        self.writers = writers
        self.locks = locks
        self.partial = partial
        self.whenHeld = whenHeld
        self.maximumWait = maximumWait
        self.isTree = isTree
    }

    /// The quiet time where the kernel tells of changes.
    package static let quietWhenWatched = Duration.seconds(2)
    /// The quiet time on a polled root.
    package static let quietWhenPolled = Duration.seconds(5)

    /// The quiet time that holds for a path.
    package func quiet(isPolled: Bool) -> Duration {
        quiet ?? (isPolled ? Self.quietWhenPolled : Self.quietWhenWatched)
    }

    /// Whether a process that has a file open for writing or locked is waited for.
    package func waitsForHolder(of snapshot: Snapshot, at now: Timestamp) -> Bool {
        whenHeld.map { now.since(snapshot.changed) < $0 } ?? true
    }

    /// The rounds that hold for a path; nil when none are asked for.
    package func stable(isPolled: Bool) -> Rounds? { stable ?? (isPolled ? Rounds() : nil) }
}

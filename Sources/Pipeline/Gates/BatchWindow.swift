package import Rules
package import System

/// Decides when the events collected for a batch are delivered: when no further event has arrived for a while.
///
/// Pure: the current time is passed in. The window is open from the first event until all collected jobs are leased.
/// While it is closed, jobs that are due again do not wait.
package struct BatchWindow {
    package let batch: Rule.Batch
    private var first: ContinuousClock.Instant?
    private var last: ContinuousClock.Instant?
    /// The collected paths, up to the size of a batch.
    private var paths: Set<PathBytes> = []
    private var isComplete = false

    package init(_ batch: Rule.Batch) { self.batch = batch }

    /// Records that an event of the path was accepted.
    package mutating func record(_ path: PathBytes, at now: ContinuousClock.Instant) {
        first = first ?? now
        last = now
        if paths.count < batch.files { paths.insert(path) }
    }

    /// The time at which the batch becomes complete; nil if the window is closed or the batch is already complete.
    package var deadline: ContinuousClock.Instant? {
        guard !isComplete, let first, let last else { return nil }
        return min(last + batch.wait, first + batch.maximumWait)
    }

    /// Whether the collected jobs may be leased.
    ///
    /// Once true, it stays true until ``close()``.
    package mutating func mayLease(at now: ContinuousClock.Instant) -> Bool {
        guard let deadline else { return true }
        isComplete = deadline <= now || paths.count >= batch.files
        return isComplete
    }

    /// Records that all jobs that could be leased are leased.
    package mutating func close() { self = BatchWindow(batch) }
}

import FileEvents
package import Rules
package import System

/// Decides when the events that a rule gathers are told together: when no further one has come for a while.
///
/// Pure: the present is passed in. It is open from the first event until all that
/// has gathered is leased. While it is closed, jobs that come again have nothing
/// to wait for.
package struct BatchWindow {
    package let batch: Rule.Batch
    private var first: ContinuousClock.Instant?
    private var last: ContinuousClock.Instant?
    /// The paths that have gathered, up to those that fill a batch.
    private var paths: Set<PathBytes> = []
    private var isRipe = false

    package init(_ batch: Rule.Batch) { self.batch = batch }

    /// Notes that an event of the path was accepted.
    package mutating func note(_ path: PathBytes, at now: ContinuousClock.Instant) {
        first = first ?? now
        last = now
        if paths.count < batch.files { paths.insert(path) }
    }

    /// When it is ripe by itself; nil when it is closed or ripe already.
    package var deadline: ContinuousClock.Instant? {
        guard !isRipe, let first, let last else { return nil }
        return min(last + batch.wait, first + batch.maximumWait)
    }

    /// Whether what has gathered may be leased.
    ///
    /// It stays so until ``close()``, whatever comes in between.
    package mutating func mayLease(at now: ContinuousClock.Instant) -> Bool {
        guard let deadline else { return true }
        isRipe = deadline <= now || paths.count >= batch.files
        return isRipe
    }

    /// Notes that all that could be leased is leased.
    package mutating func close() { self = BatchWindow(batch) }
}

import System

/// The schedule of polled directories and roots.
///
/// Entries with the same interval form a queue, since each is appended with the
/// same delay. So nothing has to be sorted, and a slow poll delays the next one
/// instead of causing a backlog.
struct PollSchedule {
    enum Subject {
        case directory(DirectoryTree.ID)
        /// A check whether the root exists and is the same directory.
        case root(Int)
        /// Paths to hint after everything in the queue has had its turn this number of times.
        case paths(DoubtedPaths, after: Int, every: Duration)
    }

    /// The entries by their interval; a slice, whose first one is removed in constant time.
    private var lines: [Duration: ArraySlice<(due: ContinuousClock.Instant, subject: Subject)>] = [:]

    var nextDue: ContinuousClock.Instant? { lines.values.compactMap(\.first?.due).min() }

    mutating func add(_ subject: Subject, every interval: Duration, after now: ContinuousClock.Instant) {
        lines[interval, default: []].append((now + interval, subject))
    }

    /// Removes and returns an entry that is due, the one due longest first.
    mutating func takeDue(at now: ContinuousClock.Instant) -> Subject? {
        guard let due = nextDue, due <= now, let index = lines.values.firstIndex(where: { $0.first?.due == due }) else {
            return nil
        }
        return lines.values[index].popFirst()?.subject
    }
}

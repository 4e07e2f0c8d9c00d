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

    private struct Line {
        var waiting: [(due: ContinuousClock.Instant, subject: Subject)] = []
        /// The position of the next entry; those before it have been taken.
        var first = 0

        var nextDue: ContinuousClock.Instant? { first < waiting.count ? waiting[first].due : nil }

        mutating func take() -> Subject {
            let subject = waiting[first].subject
            first += 1
            if first > 64, first * 2 > waiting.count {
                waiting.removeFirst(first)
                first = 0
            }
            return subject
        }
    }

    private var lines: [Duration: Line] = [:]

    var nextDue: ContinuousClock.Instant? { lines.values.compactMap(\.nextDue).min() }

    mutating func add(_ subject: Subject, every interval: Duration, after now: ContinuousClock.Instant) {
        lines[interval, default: Line()].waiting.append((now + interval, subject))
    }

    /// Removes and returns an entry that is due, the one due longest first.
    mutating func takeDue(at now: ContinuousClock.Instant) -> Subject? {
        guard let due = nextDue, due <= now, let index = lines.values.firstIndex(where: { $0.nextDue == due }) else {
            return nil
        }
        return lines.values[index].take()
    }
}

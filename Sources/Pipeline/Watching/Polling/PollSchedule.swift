import FileEvents
import System

/// When which folder or root is looked at again.
///
/// Those of one interval wait in line, since each is put at the end with the
/// same rest; so nothing has to be sorted, and a slow look delays the next one
/// instead of piling up.
struct PollSchedule {
    enum Subject {
        case folder(FolderTree.ID)
        /// Whether the root is there, and is the same.
        case root(Int)
        /// Paths to be hinted, when all that waits in the line has had its turn so many times.
        case paths([PathBytes], after: Int, every: Duration)
    }

    private struct Line {
        var waiting: [(due: ContinuousClock.Instant, subject: Subject)] = []
        /// What is before this place has had its turn.
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

    /// Removes and returns one that is due, the one that has been so for longest first.
    mutating func takeDue(at now: ContinuousClock.Instant) -> Subject? {
        guard let due = nextDue, due <= now, let index = lines.values.firstIndex(where: { $0.nextDue == due }) else {
            return nil
        }
        return lines.values[index].take()
    }
}

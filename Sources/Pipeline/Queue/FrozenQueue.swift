import FileEvents
import HeapModule
import Reconciling
import Rules
import System

/// The jobs of one rule whose events are not compared with the ledger: first in, first out for each path.
struct FrozenQueue {
    struct Entry: Sendable {
        var job: Job
        let number: UInt64
        var due: ContinuousClock.Instant
        var isRunning = false
        /// The last position of the due paths that are leased before it.
        var after: UInt64 = 0

        var paths: [PathBytes] { job.event.paths }
    }

    /// The pause of a job at the head of its paths; outdated if the job has another due time by now.
    private struct Pause: Comparable {
        let due: ContinuousClock.Instant
        let number: UInt64

        static func < (one: Pause, other: Pause) -> Bool { (one.due, one.number) < (other.due, other.number) }
    }

    private(set) var entries: [UInt64: Entry] = [:]
    /// The jobs of each path in order.
    private var lines: [PathBytes: [UInt64]] = [:]
    /// The jobs at the head of their paths that are due, by number.
    private(set) var due: [UInt64] = []
    /// The pauses of those that are not.
    private var pauses = Heap<Pause>()
    /// The time of the last advance.
    private var now: ContinuousClock.Instant?
    private var runningCount = 0

    /// The number of jobs that are not running.
    var waitingCount: Int { entries.count - runningCount }
    /// The earliest time at which a further job is due, or an earlier time.
    var nextDue: ContinuousClock.Instant? { pauses.min?.due }

    subscript(number: UInt64) -> Entry? {
        get { entries[number] }
        set {
            guard let old = entries[number], let newValue else { return }
            entries[number] = newValue
            guard old.due != newValue.due || old.isRunning != newValue.isRunning else { return }
            runningCount += (newValue.isRunning ? 1 : 0) - (old.isRunning ? 1 : 0)
            schedule(newValue)
        }
    }

    /// Whether a path has an unfinished job.
    func contains(_ path: PathBytes) -> Bool { lines[path] != nil }

    mutating func append(_ entry: Entry) {
        entries[entry.number] = entry
        if entry.isRunning { runningCount += 1 }
        for path in entry.paths { lines[path, default: []].append(entry.number) }
        schedule(entry)
    }

    mutating func remove(_ number: UInt64) {
        guard let entry = entries.removeValue(forKey: number) else { return }
        if entry.isRunning { runningCount -= 1 }
        removeDue(number)
        for path in entry.paths {
            lines[path]?.removeAll { $0 == number }
            if let next = lines[path]?.first, let entry = entries[next] { schedule(entry) } else { lines[path] = nil }
        }
    }

    /// Makes jobs due whose pauses are over.
    mutating func advance(to now: ContinuousClock.Instant) {
        self.now = now
        while let pause = pauses.min, pause.due <= now {
            pauses.removeMin()
            if let entry = entries[pause.number], entry.due == pause.due { schedule(entry) }
        }
    }

    /// Makes the job at the head of a path due if it waits until a file can be read.
    mutating func wake(_ path: PathBytes, at time: ContinuousClock.Instant) {
        guard let number = lines[path]?.first, entries[number]?.job.waiting?.cause == .unreadable else { return }
        self[number]?.due = time
    }

    /// Adds a job to the due ones or to the pauses, if it is the first of its paths and is not running.
    private mutating func schedule(_ entry: Entry) {
        removeDue(entry.number)
        guard !entry.isRunning, entry.paths.allSatisfy({ lines[$0]?.first == entry.number }) else { return }
        if let now, entry.due <= now {
            due.insert(entry.number, at: position(of: entry.number))
        } else {
            pauses.insert(Pause(due: entry.due, number: entry.number))
        }
    }

    private mutating func removeDue(_ number: UInt64) {
        let position = position(of: number)
        if position < due.count, due[position] == number { due.remove(at: position) }
    }

    private func position(of number: UInt64) -> Int {
        if due.last.map({ $0 < number }) ?? true { return due.count }
        return due.indices.bisected { due[$0] >= number }
    }
}

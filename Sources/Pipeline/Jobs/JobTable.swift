import FileEvents
import HeapModule
import Reconciling
import Rules
import System

/// The unfinished jobs of one rule, each with one entry from its lease, or from its event, until its outcome.
///
/// A job for a difference between the ledger and the disk runs when its path does, and the reconciler's offer with its
/// number says when that is. The others were stored when they happened: they run first in, first out for each path.
struct JobTable {
    struct Entry: Sendable {
        var job: Job
        let number: UInt64
        /// The schedule of a stored job; nil for a difference.
        var schedule: Schedule?

        var isStored: Bool { schedule != nil }

        /// Makes the next attempt at a stored job due at the time.
        mutating func putBack(until time: ContinuousClock.Instant) {
            schedule?.isRunning = false
            schedule?.due = time
        }
    }

    struct Schedule: Sendable, Hashable {
        var due: ContinuousClock.Instant
        var isRunning = false
        /// The last position of the due paths that are leased before it.
        var after: UInt64 = 0
    }

    /// The pause of a stored job at the head of its paths; outdated if the job has another due time by now.
    private struct Pause: Comparable {
        let due: ContinuousClock.Instant
        let number: UInt64

        static func < (one: Pause, other: Pause) -> Bool { (one.due, one.number) < (other.due, other.number) }
    }

    private var all: [UInt64: Entry] = [:]
    /// The stored jobs of each path in order.
    private var lines: [PathBytes: [UInt64]] = [:]
    /// The stored jobs at the head of their paths that are due, by number.
    private(set) var due: [UInt64] = []
    /// The pauses of those that are not.
    private var pauses = Heap<Pause>()
    /// The time of the last advance.
    private var now: ContinuousClock.Instant?
    /// The stored jobs whose rows are outdated.
    private var changed: Set<UInt64> = []

    /// The number of stored jobs.
    private(set) var storedCount = 0
    /// The number of stored jobs that are not running.
    private(set) var waitingCount = 0

    var isEmpty: Bool { all.isEmpty }
    var count: Int { all.count }
    var entries: some Collection<Entry> { all.values }
    /// The earliest time at which a further stored job is due, or an earlier time.
    var nextDue: ContinuousClock.Instant? { pauses.min?.due }

    subscript(number: UInt64) -> Entry? { all[number] }

    /// Whether a path has an unfinished stored job.
    func contains(_ path: PathBytes) -> Bool { lines[path] != nil }

    // MARK: Changes

    /// Adds a job; that of a difference replaces the one with its number.
    ///
    /// The row of a stored job is written with the next commit, unless it was restored from there.
    mutating func insert(_ entry: Entry, isRestored: Bool = false) {
        all[entry.number] = entry
        guard let schedule = entry.schedule else { return }
        if !isRestored { changed.insert(entry.number) }
        storedCount += 1
        if !schedule.isRunning { waitingCount += 1 }
        for path in entry.job.event.paths { lines[path, default: []].append(entry.number) }
        self.schedule(entry)
    }

    /// Changes a job, if it is unfinished; the row of a stored one is written with the next commit.
    mutating func update(_ number: UInt64, _ body: (inout Entry) -> Void) {
        guard let index = all.index(forKey: number) else { return }
        let old = all.values[index].schedule
        body(&all.values[index])
        guard old != nil else { return }
        changed.insert(number)
        reschedule(all.values[index], from: old)
    }

    /// Sets the time of the next attempt at a stored job, without writing its row.
    mutating func delay(_ number: UInt64, until time: ContinuousClock.Instant) {
        guard let index = all.index(forKey: number) else { return }
        let old = all.values[index].schedule
        all.values[index].schedule?.due = time
        reschedule(all.values[index], from: old)
    }

    @discardableResult
    mutating func remove(_ number: UInt64) -> Entry? {
        guard let entry = all.removeValue(forKey: number) else { return nil }
        guard let schedule = entry.schedule else { return entry }
        changed.remove(number)
        storedCount -= 1
        if !schedule.isRunning { waitingCount -= 1 }
        removeDue(number)
        for path in entry.job.event.paths {
            lines[path]?.removeAll { $0 == number }
            if let next = lines[path]?.first, let entry = all[next] { self.schedule(entry) } else { lines[path] = nil }
        }
        return entry
    }

    /// Returns the stored jobs whose rows are outdated, once.
    mutating func takeChanged() -> [Entry] {
        guard !changed.isEmpty else { return [] }
        defer { changed = [] }
        return changed.compactMap { all[$0] }
    }

    // MARK: Schedule

    /// Makes stored jobs due whose pauses are over.
    mutating func advance(to now: ContinuousClock.Instant) {
        self.now = now
        while let pause = pauses.min, pause.due <= now {
            pauses.removeMin()
            if let entry = all[pause.number], entry.schedule?.due == pause.due { schedule(entry) }
        }
    }

    /// Makes the stored job at the head of a path due if it waits until a file can be read.
    mutating func wake(_ path: PathBytes, at time: ContinuousClock.Instant) {
        guard let number = lines[path]?.first, all[number]?.job.waiting?.cause == .unreadable else { return }
        delay(number, until: time)
    }

    private mutating func reschedule(_ entry: Entry, from old: Schedule?) {
        guard let old, let new = entry.schedule, new != old else { return }
        waitingCount += (old.isRunning ? 1 : 0) - (new.isRunning ? 1 : 0)
        schedule(entry)
    }

    /// Adds a stored job to the due ones or to the pauses, if it is the first of its paths and is not running.
    private mutating func schedule(_ entry: Entry) {
        removeDue(entry.number)
        guard let schedule = entry.schedule, !schedule.isRunning,
            entry.job.event.paths.allSatisfy({ lines[$0]?.first == entry.number })
        else { return }
        if let now, schedule.due <= now {
            due.insert(entry.number, at: position(of: entry.number))
        } else {
            pauses.insert(Pause(due: schedule.due, number: entry.number))
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

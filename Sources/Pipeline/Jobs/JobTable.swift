import FileEvents
import HeapModule
import Reconciling
package import Rules
package import System

extension Job.Schedule {
    /// Makes the next attempt due at the time.
    package mutating func putBack(until time: ContinuousClock.Instant) { (isRunning, due) = (false, time) }
}

/// The unfinished jobs of one rule, each from its lease, or from its event, until its outcome.
///
/// A job for a difference between the ledger and the disk runs when its path does, and the reconciler's offer with its
/// number says when that is. The others were stored when they happened: they run first in, first out for each path.
package struct JobTable {
    /// The pause of a stored job at the head of its paths; outdated if the job has another due time by now.
    private struct Pause: Comparable {
        let due: ContinuousClock.Instant
        let number: UInt64

        static func < (one: Pause, other: Pause) -> Bool { (one.due, one.number) < (other.due, other.number) }
    }

    private var all: [UInt64: Job] = [:]
    /// The stored jobs of each path in order.
    private var lines: [PathBytes: [UInt64]] = [:]
    /// The stored jobs at the head of their paths that are due, by number.
    package private(set) var due: [UInt64] = []
    /// The pauses of those that are not.
    private var pauses = Heap<Pause>()
    /// The time of the last advance.
    private var now: ContinuousClock.Instant?
    /// The stored jobs whose rows are outdated.
    private var changed: Set<UInt64> = []

    /// The number of stored jobs.
    package private(set) var storedCount = 0
    /// The number of stored jobs that are not running.
    package private(set) var waitingCount = 0

    package var isEmpty: Bool { all.isEmpty }
    package var count: Int { all.count }
    package var jobs: some Collection<Job> { all.values }
    /// The earliest time at which a further stored job is due, or an earlier time.
    package var nextDue: ContinuousClock.Instant? { pauses.min?.due }

    package subscript(number: UInt64) -> Job? { all[number] }

    /// Whether a path has an unfinished stored job.
    package func contains(_ path: PathBytes) -> Bool { lines[path] != nil }

    // MARK: Changes

    /// Adds a job; that of a difference replaces the one with its number.
    ///
    /// The row of a stored job is written with the next commit, unless it was restored from there.
    package mutating func insert(_ job: Job, isRestored: Bool = false) {
        all[job.number] = job
        guard let schedule = job.schedule else { return }
        if !isRestored { changed.insert(job.number) }
        storedCount += 1
        if !schedule.isRunning { waitingCount += 1 }
        for path in job.event.paths { lines[path, default: []].append(job.number) }
        self.schedule(job)
    }

    /// Changes a job, if it is unfinished; the row of a stored one is written with the next commit.
    package mutating func update(_ number: UInt64, _ body: (inout Job) -> Void) {
        guard let index = all.index(forKey: number) else { return }
        let old = all.values[index].schedule
        body(&all.values[index])
        guard old != nil else { return }
        changed.insert(number)
        reschedule(all.values[index], from: old)
    }

    /// Sets the time of the next attempt at a stored job, without writing its row.
    package mutating func delay(_ number: UInt64, until time: ContinuousClock.Instant) {
        guard let index = all.index(forKey: number) else { return }
        let old = all.values[index].schedule
        all.values[index].schedule?.due = time
        reschedule(all.values[index], from: old)
    }

    @discardableResult
    package mutating func remove(_ number: UInt64) -> Job? {
        guard let job = all.removeValue(forKey: number) else { return nil }
        guard let schedule = job.schedule else { return job }
        changed.remove(number)
        storedCount -= 1
        if !schedule.isRunning { waitingCount -= 1 }
        removeDue(number)
        for path in job.event.paths {
            lines[path]?.removeAll { $0 == number }
            if let next = lines[path]?.first, let job = all[next] { self.schedule(job) } else { lines[path] = nil }
        }
        return job
    }

    /// Returns the stored jobs whose rows are outdated, once.
    package mutating func takeChanged() -> [Job] {
        guard !changed.isEmpty else { return [] }
        defer { changed = [] }
        return changed.compactMap { all[$0] }
    }

    // MARK: Schedule

    /// Makes stored jobs due whose pauses are over.
    package mutating func advance(to now: ContinuousClock.Instant) {
        self.now = now
        while let pause = pauses.min, pause.due <= now {
            pauses.removeMin()
            if let job = all[pause.number], job.schedule?.due == pause.due { schedule(job) }
        }
    }

    /// Makes the stored job at the head of a path due if it waits until a file can be read.
    package mutating func wake(_ path: PathBytes, at time: ContinuousClock.Instant) {
        guard let number = lines[path]?.first, all[number]?.waiting?.cause == .unreadable else { return }
        delay(number, until: time)
    }

    private mutating func reschedule(_ job: Job, from old: Job.Schedule?) {
        guard let old, let new = job.schedule, new != old else { return }
        waitingCount += (old.isRunning ? 1 : 0) - (new.isRunning ? 1 : 0)
        schedule(job)
    }

    /// Adds a stored job to the due ones or to the pauses, if it is the first of its paths and is not running.
    private mutating func schedule(_ job: Job) {
        removeDue(job.number)
        guard let schedule = job.schedule, !schedule.isRunning,
            job.event.paths.allSatisfy({ lines[$0]?.first == job.number })
        else { return }
        if let now, schedule.due <= now {
            due.insert(job.number, at: position(of: job.number))
        } else {
            pauses.insert(Pause(due: schedule.due, number: job.number))
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

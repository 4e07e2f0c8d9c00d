import FileEvents
import Reconciling
import Rules

/// The jobs of one rule whose events are not compared with the ledger: first in, first out for each path.
struct FrozenQueue {
    struct Entry: Sendable {
        var job: Job
        let number: UInt64
        var due: ContinuousClock.Instant
        var isRunning = false
        /// The last place of the due paths that are leased before it.
        var after: UInt64 = 0
        /// The reason for which it waits.
        var waiting: Waiting?

        var paths: [PathBytes] { [job.event.from, job.event.path].compactMap(\.self) }
    }

    private(set) var entries: [UInt64: Entry] = [:]
    private var order: [UInt64] = []
    private var lines: [PathBytes: [UInt64]] = [:]

    var isEmpty: Bool { entries.isEmpty }
    /// The number of jobs that do not run.
    var waitingCount: Int { entries.values.count { !$0.isRunning } }
    var all: [Entry] { order.compactMap { entries[$0] } }
    /// The earliest time at which a job is due that does not run.
    func nextDue(after now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        entries.values.lazy.filter { !$0.isRunning && $0.due > now }.map(\.due).min()
    }

    subscript(number: UInt64) -> Entry? {
        get { entries[number] }
        set { if entries[number] != nil, let newValue { entries[number] = newValue } }
    }

    /// Whether a job of the path has not ended.
    func contains(_ path: PathBytes) -> Bool { lines[path] != nil }

    mutating func append(_ entry: Entry) {
        entries[entry.number] = entry
        order.append(entry.number)
        for path in entry.paths { lines[path, default: []].append(entry.number) }
    }

    mutating func remove(_ number: UInt64) {
        guard let entry = entries.removeValue(forKey: number) else { return }
        for path in entry.paths {
            lines[path]?.removeAll { $0 == number }
            if lines[path]?.isEmpty == true { lines[path] = nil }
        }
        if order.first == number { order.removeFirst() } else { order.removeAll { $0 == number } }
    }

    /// Whether ``due(at:)`` has any.
    func hasDue(at now: ContinuousClock.Instant) -> Bool {
        order.contains { number in entries[number].map { isDue($0, at: now) } ?? false }
    }

    private func isDue(_ entry: Entry, at now: ContinuousClock.Instant) -> Bool {
        !entry.isRunning && entry.due <= now && entry.paths.allSatisfy { lines[$0]?.first == entry.number }
    }

    /// The due jobs before which there is none of their paths, in order.
    func due(at now: ContinuousClock.Instant) -> [Entry] {
        guard !entries.isEmpty else { return [] }
        return order.lazy.compactMap { entries[$0] }.filter { isDue($0, at: now) }
    }

    /// Makes the jobs due that wait; only those of a path if there is one.
    mutating func wake(_ path: PathBytes? = nil, at now: ContinuousClock.Instant) {
        for number in path.map({ lines[$0] ?? [] }) ?? order where entries[number].map({ $0.waiting != nil }) ?? false {
            entries[number]?.due = now
            entries[number]?.waiting = nil
        }
    }
}

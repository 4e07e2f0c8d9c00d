package import FileEvents
package import Reconciling
package import Rules
import Synchronization

/// A journal that lives as long as the program.
///
/// What is accepted but not done is lost when the program dies, and so is the
/// ledger: the next start takes what it finds as known.
package final class MemoryJournal: Journal {
    /// Nothing of it leaves the lock: the trees are objects.
    private struct Files: KnownFiles, @unchecked Sendable {
        var trees: [String: LedgerTree] = [:]

        func known(_ rule: String, _ path: PathBytes) -> Snapshot? { trees[rule]?[path] }

        mutating func set(_ entry: LedgerEntry) {
            trees[entry.view, default: LedgerTree()].set(entry.path, entry.snapshot)
        }
    }

    private let queue = Mutex(JobQueue(Files()))

    /// The rules that have begun.
    private struct Begun {
        var selection: String
        var since: Timestamp
        var isComplete = false
        var isInForce = true
    }

    private let begun = Mutex<[String: Begun]>([:])

    private let paused = Mutex(Pauses())

    package init() {}

    // MARK: Life

    package func begin(_ rules: [RuleRecord], isWatching: Bool, at now: Timestamp) -> [String: RuleStart] {
        begun.withLock { begun in
            for name in begun.keys { begun[name]?.isInForce = false }
            let names = Set(rules.map(\.name))
            for rule in rules {
                for former in rule.formerly where !names.contains(former) {
                    guard let row = begun.removeValue(forKey: former) else { continue }
                    queue.withLock { queue in
                        queue.rename(former, to: rule.name)
                        let tree = queue.files.trees.removeValue(forKey: former)
                        if begun[rule.name] == nil { queue.files.trees[rule.name] = tree }
                    }
                    begun[rule.name] = begun[rule.name] ?? row
                }
            }
            queue.withLock { $0.setAside(except: names) }
            return Dictionary(rules.map { ($0.name, begin($0, &begun[$0.name], at: now)) }) { first, _ in first }
        }
    }

    private func begin(_ rule: RuleRecord, _ row: inout Begun?, at now: Timestamp) -> RuleStart {
        guard let known = row else {
            row = Begun(selection: rule.selection, since: now)
            return .fresh
        }
        row?.isInForce = true
        guard known.isComplete else { return .unfinished(since: known.since) }
        guard known.selection != rule.selection else { return .resumed }
        row?.selection = rule.selection
        return .reselected(since: now)
    }

    package func noteStarted(at now: Timestamp) {
        begun.withLock { begun in
            for name in begun.keys where begun[name]?.isInForce == true { begun[name]?.isComplete = true }
        }
    }

    package var lastKept: Timestamp? { nil }

    package var mounts: [MountRecord] { [] }

    package func noteMounts(_ mounts: [MountRecord]) {}

    package func commit(at now: Timestamp) -> JournalFault? { nil }

    package func secure(at now: Timestamp) -> JournalFault? { nil }

    package func note(at now: Timestamp) {}

    package func catchUp(at now: Timestamp) {}

    package var commitDue: ContinuousClock.Instant? { nil }

    // MARK: By hand

    package func retry(_ job: JobID, now: ContinuousClock.Instant) { queue.withLock { _ = $0.hasten(job, due: now) } }

    package func discard(_ job: JobID) { queue.withLock { _ = $0.discard(job) } }

    package func changes(of job: JobID) -> [KeptChanges] { [] }

    package func note(_ undo: UndoRecord, of changes: KeptChanges, _ ownWrites: [LedgerEntry]) {
        queue.withLock { $0.noteOwn(ownWrites) }
    }

    // MARK: Ledger

    package func snapshot(view: String, path: PathBytes) -> Snapshot? { queue.withLock { $0.files.known(view, path) } }

    package func paths(view: String, identity: FileIdentity) -> [PathBytes] {
        queue.withLock { $0.files.trees[view]?.paths(of: identity) ?? [] }
    }

    package func visit(view: String, inside folder: PathBytes, _ body: (PathBytes, Snapshot) -> Void) {
        queue.withLock { $0.files.trees[view]?.visit(inside: folder, body) }
    }

    package func pendingEvent(view: String, path: PathBytes) -> FileEvent? {
        queue.withLock { $0.pending(view, path)?.event }
    }

    package func hasPending(view: String, path: PathBytes) -> Bool { queue.withLock { $0.hasPending(view, path) } }

    // MARK: Queue

    package func accept(_ jobs: [Job], _ entries: [LedgerEntry], now: ContinuousClock.Instant) {
        queue.withLock { $0.accept(jobs, entries, now: now) }
    }

    package func lease(rule: String, lot: Lot, busy: Set<PathBytes>, now: ContinuousClock.Instant) -> [Job] {
        queue.withLock { $0.lease(rule: rule, lot: lot, busy: busy, now: now) }
    }

    package func hasDue(rule: String, busy: Set<PathBytes>, now: ContinuousClock.Instant) -> Bool {
        queue.withLock { $0.hasDue(rule: rule, busy: busy, now: now) }
    }

    package func lease(rule: String, paths: [PathBytes], busy: Set<PathBytes>, now: ContinuousClock.Instant) -> [Job] {
        queue.withLock { $0.lease(rule: rule, paths: paths, busy: busy, now: now) }
    }

    package func wake(rule: String, path: PathBytes?, now: ContinuousClock.Instant) {
        queue.withLock { $0.wake(rule: rule, path: path, now: now) }
    }

    package func refusal(rule: String, path: PathBytes, snapshot: Snapshot) -> Refusal? {
        queue.withLock { $0.refusal(rule, path, snapshot) }
    }

    package var held: Int { queue.withLock { $0.held } }

    package func record(
        _ job: Job, _ attempt: AttemptRecord?, _ disposition: Disposition, _ ownWrites: [LedgerEntry]
    ) -> [PathBytes] {
        queue.withLock { $0.record(job, attempt, disposition, ownWrites) }
    }

    package func note(_ steps: [Outcome], of job: JobID) { queue.withLock { $0.note(steps, of: job) } }

    package var waiting: [String: Int] { queue.withLock { $0.waiting } }

    package func nextDue(after now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        queue.withLock { $0.nextDue(after: now) }
    }

    package func resting(at now: ContinuousClock.Instant) -> Int { queue.withLock { $0.resting(at: now) } }

    package var pendingRules: Set<String> { queue.withLock { Set($0.lanes.keys) } }

    package var counts: JobCounts { queue.withLock { $0.counts } }

    package var pendingCounts: [String: Int] { queue.withLock { $0.pendingCounts } }

    package var pauses: Pauses { paused.withLock { $0 } }

    package func notePauses(_ pauses: Pauses) { paused.withLock { $0 = pauses } }
}

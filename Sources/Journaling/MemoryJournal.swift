package import FileEvents
import HeapModule
import PluginProtocol
package import Reconciling
package import Rules
import Synchronization

/// A journal that lives as long as the program.
///
/// What is accepted but not done is lost when the program dies, and so is the
/// ledger: the next start takes what it finds as known.
package final class MemoryJournal: Journal {
    private struct Place: Comparable {
        var due: ContinuousClock.Instant
        var sequence: UInt64
        var job: JobID

        static func < (left: Place, right: Place) -> Bool {
            (left.due, left.sequence) < (right.due, right.sequence)
        }
    }

    /// The pending jobs of one rule.
    private struct Lane {
        /// Jobs that were due when somebody looked last.
        var ready = Heap<Place>()
        /// Jobs that become due later.
        var resting = Heap<Place>()
        /// The pending job of a path, which a newer event joins.
        var byPath: [PathBytes: JobID] = [:]

        /// Sorts out what has become due, so that a due job that can't run hides no later one.
        mutating func wake(at now: ContinuousClock.Instant) {
            while let first = resting.min, first.due <= now {
                ready.insert(first)
                resting.removeMin()
            }
        }
    }

    private struct State {
        var ledger: [String: LedgerTree] = [:]
        var lanes: [String: Lane] = [:]
        /// Pending and running jobs.
        var jobs: [JobID: Job] = [:]
        /// The rules and paths of running jobs.
        var running: [String: Set<PathBytes>] = [:]
        var counts = JobCounts()
        var sequence: UInt64 = 0

        mutating func apply(_ entries: [LedgerEntry]) {
            for entry in entries { ledger[entry.view, default: LedgerTree()].set(entry.path, entry.snapshot) }
        }

        /// Sets what actions themselves have left, and keeps of what is known that which a look at the path does not give.
        mutating func applyOwn(_ entries: [LedgerEntry]) {
            for entry in entries {
                var snapshot = entry.snapshot
                if let known = ledger[entry.view]?[entry.path] {
                    if let delivered = known.delivered { snapshot?.delivered = delivered }
                    if snapshot?.digest == nil { snapshot?.digest = known.digest }
                    if snapshot?.extended == nil { snapshot?.extended = known.extended }
                }
                apply([LedgerEntry(view: entry.view, path: entry.path, snapshot: snapshot)])
            }
        }

        /// Notes the checksum of the content that was handled, if the path still has it.
        mutating func noteHandled(_ job: Job) {
            let event = job.event
            guard event.kind == .created || event.kind == .modified, event.snapshot.type == .file,
                let digest = event.snapshot.digest, var known = ledger[job.rule]?[event.path],
                known.hasSameContent(as: event.snapshot)
            else { return }
            known.digest = digest
            ledger[job.rule]?.set(event.path, known)
        }

        /// The pending job of a path, which a newer event joins.
        func pending(_ rule: String, _ path: PathBytes) -> Job? { lanes[rule]?.byPath[path].flatMap { jobs[$0] } }

        mutating func enqueue(_ job: Job, due: ContinuousClock.Instant) {
            sequence += 1
            jobs[job.id] = job
            lanes[job.rule, default: Lane()].resting.insert(Place(due: due, sequence: sequence, job: job.id))
            if job.event.tail != nil, lanes[job.rule]?.byPath[job.event.path] != nil {
                // It stands beside a newer one, which goes on to take in what comes.
            } else if EventMask.differences.contains(EventMask(job.event.kind)) {
                lanes[job.rule]?.byPath[job.event.path] = job.id
            }
            counts.pending += 1
        }

        /// Gives the place of a job that failed before to one that begins anew.
        mutating func supersede(_ old: Job, by job: Job, due: ContinuousClock.Instant) {
            forget(old)
            counts.skipped += 1
            var job = job
            job.event = old.event
            enqueue(job, due: due)
        }

        mutating func putBack(_ job: Job, _ outcome: Outcome, due: ContinuousClock.Instant, counts: Bool) {
            var job = job
            job.previous = PreviousAttempt(
                attempt: job.attempt, outcome: outcome.ending.rawValue, message: outcome.message)
            job.isInterrupted = outcome.isInterrupted
            if !counts { job.attempt -= 1 }
            guard EventMask.differences.contains(EventMask(job.event.kind)), job.event.tail == nil else {
                // What it tells, nothing newer does.
                enqueue(job, due: due)
                return
            }
            if let waiting = pending(job.rule, job.event.path), MemoryJournal.leavesProgress(job, waiting.event) {
                forget(waiting)
                job.event = MemoryJournal.merged(job.event, waiting.event)
            }
            if !join(job) { enqueue(job, due: due) }
        }

        /// Removes the job of the name that a moved file had, when nobody has begun it: it would find nothing there.
        mutating func takeFormer(of job: Job) -> Job? {
            guard job.event.kind == .moved, let from = job.event.from, let former = pending(job.rule, from),
                former.attempt == 0, former.event.kind != .deleted,
                former.event.snapshot.identity == job.event.snapshot.identity
            else { return nil }
            forget(former)
            return former
        }

        /// Of a move that nobody was told of, to a name that is gone by now, only the old name is told: it is deleted.
        mutating func tellOldName(of waiting: Job, gone job: Job, due: ContinuousClock.Instant) -> Bool {
            guard waiting.event.kind == .moved, job.event.kind == .deleted, let from = waiting.event.from else {
                return false
            }
            forget(waiting)
            if ledger[job.rule]?[from] == nil, lanes[job.rule]?.byPath[from] == nil {
                var old = waiting
                old.event = job.event
                old.event.path = from
                old.event.before = waiting.event.before
                enqueue(old, due: due)
            }
            // The new name was known too, if the move replaced a file there.
            if waiting.event.isReplaced { enqueue(job, due: due) }
            return true
        }

        /// Makes the ledger forget a move whose new name was gone before anything was done for it.
        mutating func takeBackMove(_ event: FileEvent, of rule: String) {
            if let from = event.from, ledger[rule]?[from] == nil {
                ledger[rule, default: LedgerTree()].set(from, event.before)
            }
            guard !event.isReplaced, lanes[rule]?.byPath[event.path] == nil,
                ledger[rule]?[event.path]?.identity == event.snapshot.identity
            else { return }
            ledger[rule]?.set(event.path, nil)
        }

        /// Merges an older job into the pending one of its path; false when there is none.
        mutating func join(_ older: Job) -> Bool {
            guard var waiting = pending(older.rule, older.event.path) else { return false }
            waiting.event = MemoryJournal.merged(older.event, waiting.event)
            jobs[waiting.id] = waiting
            return true
        }

        /// Lets a pending job be told for itself, whatever comes of its path.
        mutating func standAlone(_ job: Job) {
            if lanes[job.rule]?.byPath[job.event.path] == job.id { lanes[job.rule]?.byPath[job.event.path] = nil }
        }

        /// Drops the pending job that tells of nothing but this entry.
        mutating func dropPending(_ entry: LedgerEntry) -> PathBytes? {
            guard let job = pending(entry.view, entry.path), job.attempt == 0, job.event.tail == nil else { return nil }
            if let snapshot = entry.snapshot {
                guard job.event.kind != .deleted, job.event.snapshot.hasSameContent(as: snapshot) else { return nil }
            } else {
                guard job.event.kind == .deleted else { return nil }
            }
            forget(job)
            return entry.path
        }

        /// Takes a pending job out of the queue; its place in the heap is found empty later.
        mutating func forget(_ job: Job) {
            standAlone(job)
            jobs[job.id] = nil
            counts.pending -= 1
        }
    }

    private let state = Mutex(State())

    package init() {}

    package func snapshot(view: String, path: PathBytes) -> Snapshot? {
        state.withLock { $0.ledger[view]?[path] }
    }

    package func paths(view: String, identity: FileIdentity) -> [PathBytes] {
        state.withLock { $0.ledger[view]?.paths(of: identity) ?? [] }
    }

    package func visit(view: String, inside folder: PathBytes, _ body: (PathBytes, Snapshot) -> Void) {
        if folder.bytes != [.slash], let snapshot = snapshot(view: view, path: folder) { body(folder, snapshot) }
        // Folder by folder, so that the lock is not held while somebody looks at the disk.
        var rest = [folder]
        while let folder = rest.popLast() {
            guard let listing = state.withLock({ $0.ledger[view]?.list(folder) }) else { return }
            for (path, snapshot) in listing.entries { body(path, snapshot) }
            rest += listing.folders
        }
    }

    package func accept(_ jobs: [Job], _ entries: [LedgerEntry], now: ContinuousClock.Instant) {
        state.withLock { state in
            state.apply(entries)
            for var job in jobs {
                guard EventMask.differences.contains(EventMask(job.event.kind)) else {
                    // It tells of a moment, not of a difference: nothing newer does its work.
                    state.enqueue(job, due: now)
                    continue
                }
                if let former = state.takeFormer(of: job) {
                    job.event = Self.collapsed(former.event, job.event)
                }
                guard var waiting = state.pending(job.rule, job.event.path) else {
                    state.enqueue(job, due: now)
                    continue
                }
                if waiting.event.tail != nil, job.event.kind == .deleted {
                    // The text is still to be told, and a deletion has no place for it.
                    state.standAlone(waiting)
                    state.enqueue(job, due: now)
                    continue
                }
                if state.tellOldName(of: waiting, gone: job, due: now) { continue }
                let isUntouched = waiting.attempt == 0 && waiting.steps.isEmpty
                let mayGoOn = isUntouched || Self.leavesProgress(waiting, job.event)
                waiting.event = Self.merged(waiting.event, job.event)
                if mayGoOn {
                    state.jobs[waiting.id] = waiting
                } else {
                    // It rests after an attempt, which says nothing of the file as it is now.
                    state.supersede(waiting, by: job, due: now)
                }
            }
        }
    }

    /// The move of a file that was not told under its former name yet, with what was to be told.
    fileprivate static func collapsed(_ former: FileEvent, _ move: FileEvent) -> FileEvent {
        var event = move
        event.before = former.before
        event.changed = former.changed
        event.tail = former.tail
        switch former.kind {
        case .created:
            event.kind = .created
            event.from = nil
        case .moved: event.from = former.from
        default: break
        }
        return event
    }

    /// Whether what was done for a job is as good after the newer event: not if it brings other content.
    fileprivate static func leavesProgress(_ job: Job, _ newer: FileEvent) -> Bool {
        newer.kind == .attributes && newer.snapshot.hasSameContent(as: job.event.snapshot)
    }

    /// One event that tells what both do: the newer facts, and that the name is new if it was.
    fileprivate static func merged(_ waiting: FileEvent, _ newer: FileEvent) -> FileEvent {
        var event = newer
        event.before = waiting.before
        event.tail = TailText.joined(waiting.tail, newer.tail)
        if newer.kind == .modified || newer.kind == .attributes {
            if waiting.kind == .created || waiting.kind == .moved {
                event.kind = waiting.kind
                event.from = waiting.from
            } else if waiting.kind == .modified {
                event.kind = .modified
                event.changed = Array(Set(waiting.changed + newer.changed)).sorted()
            }
        }
        event.isReplaced = waiting.isReplaced || newer.isReplaced
        return event
    }

    package func lease(
        rule: String, limit: Int, busy: Set<PathBytes>, now: ContinuousClock.Instant
    ) -> [Job] {
        state.withLock { state in
            guard limit > 0, var lane = state.lanes.removeValue(forKey: rule) else { return [] }
            var taken: [Job] = []
            var passed: [Place] = []
            var busy = busy
            lane.wake(at: now)
            while taken.count < limit, let place = lane.ready.popMin() {
                guard var job = state.jobs[place.job] else { continue }
                guard busy.insert(job.event.path).inserted else {
                    passed.append(place)
                    continue
                }
                job.attempt += 1
                state.jobs[job.id] = job
                if lane.byPath[job.event.path] == job.id { lane.byPath[job.event.path] = nil }
                state.running[rule, default: []].insert(job.event.path)
                taken.append(job)
            }
            for place in passed { lane.ready.insert(place) }
            if !lane.ready.isEmpty || !lane.resting.isEmpty { state.lanes[rule] = lane }
            state.counts.pending -= taken.count
            state.counts.running += taken.count
            return taken
        }
    }

    package func record(_ job: Job, _ disposition: Disposition, _ ownWrites: [LedgerEntry]) -> [PathBytes] {
        state.withLock { state in
            guard state.jobs.removeValue(forKey: job.id) != nil else { preconditionFailure("a record without a lease") }
            state.counts.running -= 1
            state.running[job.rule]?.remove(job.event.path)
            state.applyOwn(ownWrites)
            // Before the job is put back: it rests on its own writes too, and must not be taken for their echo.
            let dropped = ownWrites.compactMap { state.dropPending($0) }
            switch disposition {
            case .ended(.succeeded, _):
                state.noteHandled(job)
                state.counts.succeeded += 1
            case .ended(.skipped, _): state.counts.skipped += 1
            case .ended: state.counts.dead += 1
            case .returned:
                if job.event.kind == .moved {
                    state.takeBackMove(job.event, of: job.rule)
                } else if !state.join(job) {
                    // A newer job would do the work of both, and the ledger know its file already.
                    state.apply([LedgerEntry(view: job.rule, path: job.event.path, snapshot: job.event.before)])
                }
            case .again(let due, let outcome, let counts):
                state.putBack(job, outcome, due: due, counts: counts)
            }
            return dropped
        }
    }

    package func hasPending(view: String, path: PathBytes) -> Bool {
        state.withLock { state in
            state.lanes[view]?.byPath[path] != nil || state.running[view]?.contains(path) == true
        }
    }

    package func nextDue(after now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        state.withLock { state in
            for rule in state.lanes.keys {
                state.lanes[rule]?.wake(at: now)
                // A job that was dropped leaves its place behind.
                while let first = state.lanes[rule]?.resting.min, state.jobs[first.job] == nil {
                    state.lanes[rule]?.resting.removeMin()
                }
            }
            return state.lanes.values.compactMap(\.resting.min?.due).min()
        }
    }

    package func resting(at now: ContinuousClock.Instant) -> Int {
        state.withLock { state in
            state.lanes.values.reduce(0) { sum, lane in
                sum + lane.resting.unordered.count { $0.due > now && state.jobs[$0.job] != nil }
            }
        }
    }

    package var pendingRules: Set<String> { state.withLock { Set($0.lanes.keys) } }

    package var counts: JobCounts { state.withLock { $0.counts } }
}

extension TailText {
    /// The text of two events of one path, the older one first.
    ///
    /// The reconciler reads nothing more while text waits, so that there is hardly ever a second one.
    fileprivate static func joined(_ older: TailText?, _ newer: TailText?) -> TailText? {
        guard let older, let newer else { return older ?? newer }
        var joined = older
        joined.bytes += newer.bytes
        joined.isReset = older.isReset || newer.isReset
        joined.remaining = newer.remaining
        return joined
    }
}

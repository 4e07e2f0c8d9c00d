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
        /// The pending job that tells where the file of a path is now.
        var byFormer: [PathBytes: JobID] = [:]

        /// Forgets that newer events join the job.
        mutating func forget(_ job: Job) {
            if byPath[job.event.path] == job.id { byPath[job.event.path] = nil }
            if let from = job.event.from, byFormer[from] == job.id { byFormer[from] = nil }
        }

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
        /// When the pending jobs are due, and the order in which they came.
        var places: [JobID: Place] = [:]
        /// The open jobs that are run for themselves, by rule and path; of each path only the first can be leased.
        var lines: [String: [PathBytes: [JobID]]] = [:]
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
            let place = Place(due: due, sequence: sequence, job: job.id)
            places[job.id] = place
            lanes[job.rule, default: Lane()].resting.insert(place)
            if job.isAlone {
                // Nothing joins it.
            } else if job.event.tail != nil, lanes[job.rule]?.byPath[job.event.path] != nil {
                // It stands beside a newer one, which goes on to take in what comes.
            } else if EventMask.differences.contains(EventMask(job.event.kind)) {
                lanes[job.rule]?.byPath[job.event.path] = job.id
                if let from = job.event.from { lanes[job.rule]?.byFormer[from] = job.id }
            }
            counts.pending += 1
        }

        /// Takes a job that waits until the older ones of its rule and path have ended.
        mutating func lineUp(_ job: Job, due: ContinuousClock.Instant) {
            lines[job.rule, default: [:]][job.event.path, default: []].append(job.id)
            if lines[job.rule]?[job.event.path]?.count == 1 {
                enqueue(job, due: due)
            } else {
                sequence += 1
                jobs[job.id] = job
                places[job.id] = Place(due: due, sequence: sequence, job: job.id)
                counts.pending += 1
            }
        }

        /// Lets the next job have its turn when one has ended that is run for itself.
        mutating func leaveLine(_ job: Job) {
            guard job.isAlone, var line = lines[job.rule]?[job.event.path] else { return }
            let wasFirst = line.first == job.id
            line.removeAll { $0 == job.id }
            lines[job.rule]?[job.event.path] = line.isEmpty ? nil : line
            guard wasFirst, let next = line.first, let place = places[next] else { return }
            lanes[job.rule, default: Lane()].resting.insert(place)
        }

        mutating func putBack(_ job: Job, _ outcome: Outcome, due: ContinuousClock.Instant, counts: Bool) {
            var job = job
            job.previous = PreviousAttempt(
                attempt: job.attempt, outcome: outcome.ending.rawValue, message: outcome.message)
            job.isInterrupted = outcome.isInterrupted
            if !counts { job.attempt -= 1 }
            putBack(job, due: due)
        }

        mutating func putBack(_ job: Job, due: ContinuousClock.Instant) {
            var job = job
            guard EventMask.differences.contains(EventMask(job.event.kind)), job.event.tail == nil, !job.isAlone else {
                // What it tells, nothing newer does.
                enqueue(job, due: due)
                return
            }
            let newer = related(to: job)
            if newer.isEmpty {
                enqueue(job, due: due)
            } else if newer.count == 1, let waiting = newer.first, waiting.event.path == job.event.path,
                MemoryJournal.leavesProgress(job, waiting.event)
            {
                forget(waiting)
                job.event = Self.conflated([job, waiting]).first ?? job.event
                enqueue(job, due: due)
            } else {
                serve(job, with: newer, due: firstDue(of: newer) ?? due)
            }
        }

        /// When the first of them is due.
        private func firstDue(of jobs: [Job]) -> ContinuousClock.Instant? {
            jobs.compactMap { places[$0.id]?.due }.min()
        }

        // MARK: Merging

        /// What is left to be told of events that nobody has been told of, in the order in which they came.
        ///
        /// A deletion is told even if nothing was told before, when an action has
        /// begun with what it ends: nobody knows how far it came.
        static func conflated(_ jobs: [Job]) -> [FileEvent] {
            guard let newest = jobs.last else { return [] }
            var conflation = Conflation(mask: newest.mask, roots: [newest.event.root])
            for job in jobs { conflation.add(job.event) }
            var events = conflation.takeAll()
            if newest.event.kind == .deleted, jobs.dropLast().contains(where: { $0.attempt > 0 }),
                !events.contains(where: { $0.path == newest.event.path })
            {
                events.append(newest.event)
            }
            // The newest is that of a followed file, whose text goes on where that of the others ended.
            let tail = jobs.map(\.event.tail).reduce(nil) { TailText.joined($0, $1) }
            if let tail, let place = events.firstIndex(where: { $0.path == newest.event.path }) {
                events[place].tail = tail
            }
            return events
        }

        /// Leaves out deletions of old names that have another file by now, of which was told already.
        private func withoutStale(_ events: [FileEvent], for job: Job, coming: Set<PathBytes> = []) -> [FileEvent] {
            events.filter { event in
                event.kind != .deleted || event.path == job.event.path || coming.contains(event.path)
                    || ledger[job.rule]?[event.path] == nil
            }
        }

        /// The pending jobs that tell of the job's paths, and of the paths that those tell of, oldest first.
        ///
        /// What an action has begun with is told as far as anyone knows, and takes
        /// part only at the job's own path.
        private func related(to job: Job) -> [Job] {
            guard let lane = lanes[job.rule] else { return [] }
            var found: [JobID: Job] = [:]
            var paths = [job.event.path, job.event.from].compactMap(\.self)
            while let path = paths.popLast() {
                for id in [lane.byPath[path], lane.byFormer[path]].compactMap(\.self) where found[id] == nil {
                    guard let other = jobs[id], other.attempt == 0 || other.event.path == job.event.path else {
                        continue
                    }
                    found[id] = other
                    paths += [other.event.path, other.event.from].compactMap(\.self)
                }
            }
            return found.values.sorted { places[$0.id]?.sequence ?? 0 < places[$1.id]?.sequence ?? 0 }
        }

        /// Takes a new job, merged with what is pending of its file and of its path.
        mutating func take(_ job: Job, due: ContinuousClock.Instant, coming: Set<PathBytes>) {
            let older = related(to: job)
            guard !older.isEmpty else {
                enqueue(job, due: due)
                return
            }
            let waiting = pending(job.rule, job.event.path)
            if let waiting, waiting.event.tail != nil, job.event.kind == .deleted {
                // The text is still to be told, and a deletion has no place for it.
                standAlone(waiting)
                enqueue(job, due: due)
                return
            }
            let events = withoutStale(Self.conflated(older + [job]), for: job, coming: coming)
            let isUntouched = waiting.map { $0.attempt == 0 && $0.steps.isEmpty } ?? true
            if older.count == 1, var waiting, isUntouched || MemoryJournal.leavesProgress(waiting, job.event),
                events.count == 1, let event = events.first, event.path == waiting.event.path,
                event.from == waiting.event.from
            {
                waiting.event = event
                jobs[waiting.id] = waiting
                return
            }
            // What rests after an attempt says nothing of the file as it is now.
            if !isUntouched { counts.skipped += 1 }
            replace(older, by: events, like: job, due: due)
        }

        /// Lets newer jobs do the work of one that was not done.
        private mutating func serve(_ job: Job, with newer: [Job], due: ContinuousClock.Instant) {
            let events = withoutStale(Self.conflated([job] + newer), for: job)
            if newer.count == 1, var waiting = newer.first, events.count == 1, let event = events.first,
                event.path == waiting.event.path, event.from == waiting.event.from
            {
                waiting.event = event
                jobs[waiting.id] = waiting
            } else {
                replace(newer, by: events, like: job, due: due)
            }
        }

        /// Puts events in the place of pending jobs.
        ///
        /// The event at the model's path is the model's job; the others take the ids that become free.
        private mutating func replace(
            _ pending: [Job], by events: [FileEvent], like model: Job, due: ContinuousClock.Instant
        ) {
            for job in pending { forget(job) }
            var free = pending.map(\.id)
            for event in events {
                var id = model.id
                if event.path != model.event.path {
                    let same = pending.first { $0.event.path == event.path && free.contains($0.id) }?.id
                    let random = (UInt64.random(in: 0...UInt64.max), UInt16.random(in: 0...UInt16.max))
                    id = same ?? free.last ?? JobID(now: event.time, random: random)
                    free.removeAll { $0 == id }
                }
                enqueue(Job(id: id, rule: model.rule, event: event, mask: model.mask), due: due)
            }
        }

        /// Takes back a job whose file was not any more what the job rests on.
        mutating func takeBack(_ job: Job, due: ContinuousClock.Instant) {
            let newer = related(to: job)
            if !newer.isEmpty {
                serve(job, with: newer, due: due)
            } else if job.event.kind == .moved {
                takeBackMove(job.event, of: job.rule)
            } else {
                // A newer job would do the work of both, and the ledger know its file already.
                var before = job.event.before
                if before == nil, job.event.kind != .created {
                    // Something was told of before, nobody says what: whatever is there now is another file.
                    before = job.event.snapshot
                    before?.identity = Snapshot.unseen.identity
                }
                apply([LedgerEntry(view: job.rule, path: job.event.path, snapshot: before)])
            }
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

        /// Lets a pending job be told for itself, whatever comes of its path.
        mutating func standAlone(_ job: Job) { lanes[job.rule]?.forget(job) }

        /// Drops the pending job that tells of nothing but this entry.
        mutating func dropPending(_ entry: LedgerEntry) -> PathBytes? {
            let newest = lines[entry.view]?[entry.path]?.last.flatMap { places[$0] == nil ? nil : jobs[$0] }
            guard let job = newest ?? pending(entry.view, entry.path), job.attempt == 0, job.event.tail == nil else {
                return nil
            }
            if let snapshot = entry.snapshot {
                guard job.event.kind != .deleted, job.event.snapshot.hasSameContent(as: snapshot) else { return nil }
            } else {
                guard job.event.kind == .deleted else { return nil }
            }
            forget(job)
            leaveLine(job)
            return entry.path
        }

        /// Takes a pending job out of the queue; its place in the heap is found empty later.
        mutating func forget(_ job: Job) {
            standAlone(job)
            jobs[job.id] = nil
            places[job.id] = nil
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
            let coming = Set(jobs.map(\.event.path))
            for job in jobs {
                guard EventMask.differences.contains(EventMask(job.event.kind)) else {
                    // It tells of a moment, not of a difference: nothing newer does its work.
                    state.enqueue(job, due: now)
                    continue
                }
                guard !job.isAlone else {
                    state.lineUp(job, due: now)
                    continue
                }
                state.take(job, due: now, coming: coming)
            }
        }
    }

    /// Whether what was done for a job is as good after the newer event: not if it brings other content.
    fileprivate static func leavesProgress(_ job: Job, _ newer: FileEvent) -> Bool {
        newer.kind == .attributes && newer.snapshot.hasSameContent(as: job.event.snapshot)
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
                state.places[job.id] = nil
                lane.forget(job)
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

    package func begin(_ rules: [RuleRecord], at now: Timestamp) -> [String: RuleStart] {
        Dictionary(rules.map { ($0.name, .fresh) }) { first, _ in first }
    }

    package func noteStarted(at now: Timestamp) {}

    package var mounts: [MountRecord] { [] }

    package func noteMounts(_ mounts: [MountRecord]) {}

    package func commit(at now: Timestamp) -> JournalFault? { nil }

    package func takeRequests(at now: ContinuousClock.Instant) -> [JobRequest] { [] }

    package func record(
        _ job: Job, _ attempt: AttemptRecord?, _ disposition: Disposition, _ ownWrites: [LedgerEntry]
    ) -> [PathBytes] {
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
            case .returned(let now):
                // Its action has not begun, so that nothing of it has to be told as undone.
                var unbegun = job
                unbegun.attempt -= 1
                state.takeBack(unbegun, due: now)
            case .again(let due, let outcome, let counts):
                state.putBack(job, outcome, due: due, counts: counts)
                return dropped
            case .early(let due):
                var unbegun = job
                unbegun.attempt -= 1
                state.putBack(unbegun, due: due)
                return dropped
            }
            state.leaveLine(job)
            return dropped
        }
    }

    package func hasPending(view: String, path: PathBytes) -> Bool {
        state.withLock { state in
            state.lanes[view]?.byPath[path] != nil || state.lines[view]?[path] != nil
                || state.running[view]?.contains(path) == true
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

import FileEvents
import PluginProtocol
import Reconciling
import Rules

/// The jobs that are not finished, in lanes by rule, over what is known of files.
///
/// It is the whole logic of a journal, and keeps nothing for good. A journal that
/// does sets ``changes``, and writes down what gathers there.
struct JobQueue<Files: KnownFiles> {
    var files: Files
    private(set) var counts = JobCounts()
    /// How many jobs are pending of each rule that has any.
    private(set) var pendingCounts: [String: Int] = [:]
    /// What has become of jobs since it was set last; nil when nobody asks.
    var changes: JobChanges?

    var lanes: [String: JobLane] = [:]
    /// Pending and running jobs.
    var jobs = JobStore()
    /// When the pending jobs are due, and the order in which they came.
    var places: [JobID: JobPlace] = [:]
    /// The open jobs that are run for themselves, by rule and path; of each path only the first can be leased.
    var lines: [String: [PathBytes: [JobID]]] = [:]
    /// The rules that run; nil while nobody has said.
    var inForce: Set<String>?
    /// The last jobs that `ready` has refused for good, by rule and path, as far as no file tells of them.
    var refusals: [String: [PathBytes: Refusal]] = [:]
    /// Pending jobs of rules that do not run.
    var aside: [JobID: (Job, JobPlace)] = [:]
    /// The rules and paths of running jobs.
    private var running: [String: Set<PathBytes>] = [:]
    private var sequence: UInt64 = 0
    /// Which places in the order of their lanes running jobs had.
    private(set) var leasePlaces: [JobID: UInt64] = [:]

    init(_ files: Files) { self.files = files }

    // MARK: Accepting

    mutating func accept(_ jobs: [Job], _ entries: [LedgerEntry], now: ContinuousClock.Instant) {
        for entry in entries { files.set(entry) }
        for (index, job) in jobs.enumerated() {
            if job.isDifference, !job.isAlone {
                take(job, due: now) { path in
                    jobs[(index + 1)...].contains { $0.rule == job.rule && $0.event.path == path }
                }
            } else {
                // It tells of a moment, or is run for itself: nothing newer does its work.
                enqueue(job, due: now)
            }
        }
    }

    // MARK: Leasing

    mutating func lease(rule: String, lot: Lot, busy: Set<PathBytes>, now: ContinuousClock.Instant) -> [Job] {
        guard lot.jobs > 0, var lane = lanes.removeValue(forKey: rule) else { return [] }
        var taken: [Job] = []
        var passed: [JobPlace] = []
        var busy = busy
        lane.wake(at: now)
        let limit = lot.lanes > 1 ? min(lot.jobs, max(1, lane.ready.count / lot.lanes)) : lot.jobs
        var bytes: UInt64 = 0
        while taken.count < limit, let place = lane.ready.removeFirst() {
            // A place that is not the job's any more was left behind.
            guard var job = jobs[place.job], places[place.job] == place, hasTurn(job) else { continue }
            // What is told of a file's old name has to come before or after its move, not beside it.
            let paths = [job.event.path, job.event.from].compactMap(\.self)
            let isFree = busy.isDisjoint(with: paths)
            guard isFree, !isBehind(job, place, lane) else {
                // Nor does what came after a move overtake it because the new name is busy, and the old one is not.
                if !isFree { busy.formUnion(paths) }
                passed.append(place)
                continue
            }
            let (sum, isTooLarge) = bytes.addingReportingOverflow(job.event.snapshot.size)
            bytes = isTooLarge ? .max : sum
            // What was cut off once may be what ended the program, and takes no other job with it.
            let isApart = lot.isOfStrangers && job.isInterrupted
            guard taken.isEmpty || (bytes <= lot.bytes && !isApart) else {
                passed.append(place)
                break
            }
            busy.formUnion(paths)
            begin(&job, &lane)
            taken.append(job)
            if isApart { break }
        }
        for place in passed { lane.ready.insert(place) }
        if !lane.ready.isEmpty || !lane.resting.isEmpty { lanes[rule] = lane }
        return taken
    }

    mutating func lease(rule: String, paths: [PathBytes], busy: Set<PathBytes>, now: ContinuousClock.Instant) -> [Job] {
        guard var lane = lanes.removeValue(forKey: rule) else { return [] }
        var taken: [Job] = []
        for path in paths {
            guard let id = lane.byPath[path], var job = jobs[id], let place = places[id],
                job.waiting != nil || place.due <= now, !isBehind(job, place, lane),
                busy.isDisjoint(with: [job.event.path, job.event.from].compactMap(\.self))
            else { continue }
            begin(&job, &lane)
            taken.append(job)
        }
        // Their places in the heaps are found empty later.
        lanes[rule] = lane
        return taken
    }

    mutating func hasDue(rule: String, busy: Set<PathBytes>, now: ContinuousClock.Instant) -> Bool {
        lanes[rule]?.wake(at: now)
        guard let lane = lanes[rule] else { return false }
        return lane.ready.places.contains { place in
            guard let job = jobs[place.job], places[place.job] == place, hasTurn(job) else { return false }
            return busy.isDisjoint(with: [job.event.path, job.event.from].compactMap(\.self))
                && !isBehind(job, place, lane)
        }
    }

    /// Whether an attempt that was cut off has to be made again before the job, since what that tells came before: it is
    /// about the path from which the job's file was moved, or tells that another file was moved from the job's path.
    private func isBehind(_ job: Job, _ place: JobPlace, _ lane: JobLane) -> Bool {
        let others = [job.event.from.flatMap { lane.byPath[$0] }, lane.byFormer[job.event.path]]
        return others.contains { id in
            guard let id, id != job.id, jobs[id]?.isInterrupted == true, let older = places[id] else { return false }
            return older.sequence < place.sequence
        }
    }

    /// Marks a pending job as running.
    private mutating func begin(_ job: inout Job, _ lane: inout JobLane) {
        job.attempt += 1
        job.waiting = nil
        jobs[job.id] = job
        let place = places.removeValue(forKey: job.id)
        leasePlaces[job.id] = place?.sequence
        job.due = place?.due
        lane.forget(job)
        running[job.rule, default: []].insert(job.event.path)
        changes?.noteOpen(job.id, hasFacts: false)
        countPending(job.rule, -1)
        counts.running += 1
    }

    // MARK: Recording

    mutating func record(
        _ job: Job, _ attempt: AttemptRecord?, _ disposition: Disposition, _ ownWrites: [LedgerEntry]
    ) -> [PathBytes] {
        guard let leased = jobs.removeValue(forKey: job.id) else { preconditionFailure("a record without a lease") }
        defer { leasePlaces[job.id] = nil }
        // The rule may have another name by now.
        var job = job
        job.due = nil
        var ownWrites = ownWrites
        if job.rule != leased.rule {
            for index in ownWrites.indices where ownWrites[index].view == job.rule {
                ownWrites[index].view = leased.rule
            }
            job.rule = leased.rule
        }
        let hasFacts = changes != nil && leased.event != job.event
        counts.running -= 1
        running[job.rule]?.remove(job.event.path)
        if let attempt { changes?.note(attempt, of: job.id) }
        for entry in ownWrites { setOwn(entry) }
        // Before the job is put back: it rests on its own writes too, and must not be taken for their echo.
        let dropped = ownWrites.compactMap { dropPending($0) }
        switch disposition {
        case .ended(let state, let outcome):
            if state == .dead {
                job.isHeir = job.hasBegun(endingIn: outcome)
                if !outcome.isUnbegun { forgetHandled(job) }
            }
            if state == .succeeded { noteHandled(job) }
            noteRefusal(job, state, outcome)
            noteEnd(job, state, outcome.message, outcome.code, outputs: outcome.outputs, hasFacts: hasFacts)
        case .returned(let now):
            // Its action has not begun, so that nothing of it has to be told as undone.
            var unbegun = job
            unbegun.attempt -= 1
            takeBack(unbegun, due: now)
        case .again(let due, let outcome, let counts):
            if !outcome.isUnbegun { forgetHandled(job) }
            putBack(job, outcome, due: due, counts: counts, hasFacts: hasFacts)
            return dropped
        case .early(let due, let waiting):
            var unbegun = job
            unbegun.attempt -= 1
            unbegun.waiting = waiting
            putBack(unbegun, due: due, hasFacts: hasFacts)
            return dropped
        }
        leaveLine(job)
        return dropped
    }

    /// Gives the running jobs of a rule to another.
    mutating func renameRunning(_ old: String, to new: String) {
        for id in jobs.jobs.filter({ $0.rule == old }).map(\.id) { jobs[id]?.rule = new }
        if let paths = running.removeValue(forKey: old) { running[new, default: []].formUnion(paths) }
        if let waiting = lines.removeValue(forKey: old) { lines[new, default: [:]].merge(waiting) { $1 + $0 } }
    }

    /// Notes the steps of a running job that have succeeded.
    mutating func note(_ steps: [Outcome], of id: JobID) {
        guard jobs[id] != nil, places[id] == nil else { return }
        jobs[id]?.steps = steps
        changes?.noteOpen(id, hasFacts: false)
    }

    /// Notes what is none of a job's writes, and still Alight's own.
    mutating func noteOwn(_ entries: [LedgerEntry]) {
        for entry in entries { setOwn(entry) }
        for entry in entries { _ = dropPending(entry) }
    }

    /// Sets what an action itself has left, and keeps of what is known that which a look at the path does not give.
    private mutating func setOwn(_ entry: LedgerEntry) {
        var snapshot = entry.snapshot
        if let known = files.known(entry.view, entry.path) {
            if let delivered = known.delivered { snapshot?.delivered = delivered }
            if snapshot?.digest == nil { snapshot?.digest = known.digest }
            if snapshot?.extended == nil { snapshot?.extended = known.extended }
            snapshot?.standing = known.standing
        }
        files.set(entry.view, entry.path, snapshot)
    }

    /// Notes the checksum of the content that was handled, if the path still has it.
    private mutating func noteHandled(_ job: Job) {
        let event = job.event
        guard event.kind == .created || event.kind == .modified, event.snapshot.type == .file,
            let digest = event.snapshot.digest, var known = files.known(job.rule, event.path),
            known.hasSameContent(as: event.snapshot)
        else { return }
        known.digest = digest
        files.set(job.rule, event.path, known)
    }

    /// Forgets the checksum of the content that was handled: an action has begun with another, and nobody knows how far it came.
    private mutating func forgetHandled(_ job: Job) {
        guard job.event.snapshot.type == .file, var known = files.known(job.rule, job.event.path), known.type == .file,
            known.digest != nil
        else { return }
        known.digest = nil
        files.set(job.rule, job.event.path, known)
    }

    /// Drops the pending job that tells of nothing but this entry.
    private mutating func dropPending(_ entry: LedgerEntry) -> PathBytes? {
        let newest = lines[entry.view]?[entry.path]?.last.flatMap { places[$0] == nil ? nil : jobs[$0] }
        guard let job = newest ?? pending(entry.view, entry.path), !job.hasBegun, job.event.tail == nil else {
            return nil
        }
        if let snapshot = entry.snapshot {
            guard job.event.kind != .deleted, job.event.snapshot.hasSameContent(as: snapshot) else { return nil }
        } else {
            guard job.event.kind == .deleted else { return nil }
        }
        supersede(job, by: nil)
        return entry.path
    }

    // MARK: Pending jobs

    /// The pending job of a path, which a newer event joins.
    func pending(_ rule: String, _ path: PathBytes) -> Job? { lanes[rule]?.byPath[path].flatMap { jobs[$0] } }

    mutating func enqueue(_ job: Job, due: ContinuousClock.Instant, hasFacts: Bool = true) {
        sequence += 1
        insert(job, due: due, sequence: sequence)
        changes?.noteOpen(job.id, hasFacts: hasFacts, position: sequence)
    }

    /// Gives a pending job the place that it had in an earlier run.
    mutating func insert(_ job: Job, due: ContinuousClock.Instant, sequence: UInt64) {
        self.sequence = max(self.sequence, sequence)
        let place = JobPlace(due: due, sequence: sequence, job: job.id)
        if let inForce, !inForce.contains(job.rule) {
            aside[job.id] = (job, place)
            return
        }
        jobs[job.id] = job
        places[job.id] = place
        if stand(job, sequence) { lanes[job.rule, default: JobLane()].insert(job, at: place) }
        countPending(job.rule, 1)
    }

    /// Sets the event that a pending job is to be run for.
    mutating func update(_ job: Job, _ event: FileEvent) {
        var job = job
        job.event = event
        jobs[job.id] = job
        changes?.noteOpen(job.id, hasFacts: true)
    }

    /// Takes a pending job out of the queue; its place in the heap is found empty later.
    mutating func remove(_ job: Job) {
        lanes[job.rule]?.forget(job)
        jobs[job.id] = nil
        places[job.id] = nil
        countPending(job.rule, -1)
        leaveLine(job)
    }

    /// Removes a pending job whose work others do, or nobody.
    mutating func drop(_ job: Job) {
        remove(job)
        changes?.noteGone(job.id)
    }

    private mutating func countPending(_ rule: String, _ change: Int) {
        counts.pending += change
        let count = pendingCounts[rule, default: 0] + change
        pendingCounts[rule] = count == 0 ? nil : count
    }

    /// Counts a job that has ended, and notes it in the history.
    mutating func noteEnd(
        _ job: Job, _ state: JobState, _ message: String, _ code: String?, outputs: [PathBytes] = [],
        hasFacts: Bool = false
    ) {
        switch state {
        case .succeeded: counts.succeeded += 1
        case .skipped: counts.skipped += 1
        default: counts.dead += 1
        }
        changes?.noteEnd(
            JobChanges.End(job: job, state: state, message: message, code: code, outputs: outputs), hasFacts: hasFacts)
    }

    // MARK: Looking

    /// A job that is not finished; without a place while it runs.
    func open(_ id: JobID) -> (Job, JobPlace?) {
        if let aside = aside[id] { return aside }
        guard let job = jobs[id] else { preconditionFailure("an open job that is not in the queue") }
        return (job, places[id])
    }

    func hasPending(_ rule: String, _ path: PathBytes) -> Bool {
        lanes[rule]?.byPath[path] != nil || lines[rule]?[path] != nil || running[rule]?.contains(path) == true
    }

    mutating func nextDue(after now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        for rule in lanes.keys {
            lanes[rule]?.wake(at: now)
            // A job that was dropped leaves its place behind.
            while let first = lanes[rule]?.resting.first, places[first.job] != first {
                _ = lanes[rule]?.resting.removeFirst()
            }
        }
        return lanes.values.compactMap(\.resting.first?.due).min()
    }

    func resting(at now: ContinuousClock.Instant) -> Int {
        lanes.values.reduce(0) { sum, lane in
            sum + lane.resting.places.count { $0.due > now && places[$0.job] == $0 }
        }
    }
}

import FileEvents
import PluginProtocol
import Reconciling
import Rules

// How events of one file become one job, when nobody has taken the older of them.
extension JobQueue {
    /// Takes a new job, merged with what is pending of its file and of its path.
    ///
    /// - Parameters:
    ///   - job: The job.
    ///   - due: When it is due.
    ///   - isComing: Whether a path is told of by a job of the rule that was accepted with this one, and comes after it.
    mutating func take(_ job: Job, due: ContinuousClock.Instant, isComing: (PathBytes) -> Bool) {
        let older = related(to: job)
        guard !older.isEmpty else {
            enqueue(job, due: due)
            return
        }
        let waiting = pending(job.rule, job.event.path)
        if let waiting, waiting.event.tail != nil, job.event.kind == .deleted {
            // The text is still to be told, and a deletion has no place for it.
            lanes[waiting.rule]?.forget(waiting)
            enqueue(job, due: due)
            return
        }
        let events = conflated(older + [job], for: job, isComing: isComing)
        let isTouched = waiting?.isTouched ?? false
        if older.count == 1, let waiting, !isTouched || waiting.keepsProgress(with: job.event),
            let event = events.first, events.count == 1, waiting.tells(like: event), !isBeforeMove(waiting)
        {
            update(waiting, event)
            return
        }
        // What rests after an attempt says nothing of the file as it is now.
        let superseded = isTouched ? waiting : nil
        if let superseded { remove(superseded) }
        let heir = replace(older.filter { $0.id != superseded?.id }, by: events, like: job, due: due)
        if let superseded {
            noteInheritance(of: superseded, heir)
            noteSuperseded(superseded, by: heir)
        }
    }

    /// Whether a job that came later tells that the file of this one's path was moved from there: what is told of the path
    /// now is of another file, and comes after that.
    private func isBeforeMove(_ job: Job) -> Bool {
        guard let move = lanes[job.rule]?.byFormer[job.event.path].flatMap({ places[$0] }), let place = places[job.id]
        else { return false }
        return place.sequence < move.sequence
    }

    /// Puts a job back that has to come again, or lets a newer one do its work.
    mutating func putBack(
        _ job: Job, _ outcome: Outcome, due: ContinuousClock.Instant, counts: Bool, hasFacts: Bool
    ) {
        var job = job
        job.previous = PreviousAttempt(
            attempt: job.attempt, outcome: outcome.ending.rawValue, message: outcome.message)
        job.previous?.isUnbegun = outcome.isUnbegun
        job.isInterrupted = outcome.isInterrupted && !outcome.isUnbegun
        if !counts { job.attempt -= 1 }
        putBack(job, due: due, hasFacts: hasFacts)
    }

    /// Puts a job back, or lets a newer one do its work.
    mutating func putBack(_ job: Job, due: ContinuousClock.Instant, hasFacts: Bool) {
        var job = job
        guard inForce?.contains(job.rule) ?? true else {
            putAside(job, due: due, hasFacts: hasFacts)
            return
        }
        guard job.isDifference, job.event.tail == nil, !job.isAlone else {
            // What it tells, nothing newer does.
            enqueue(job, due: due, hasFacts: hasFacts)
            return
        }
        let newer = related(to: job)
        if newer.isEmpty {
            enqueue(job, due: due, hasFacts: hasFacts)
        } else if newer.count == 1, let waiting = newer.first, waiting.event.path == job.event.path,
            job.keepsProgress(with: waiting.event)
        {
            job.event = conflated([job, waiting]).first ?? job.event
            job.isHeir = job.isHeir || waiting.isHeir
            supersede(waiting, by: job.id)
            enqueue(job, due: due)
        } else {
            let heir = serve(job, with: newer, due: firstDue(of: newer) ?? due)
            noteSuperseded(job, by: heir)
        }
    }

    /// Takes back a job whose file was not any more what the job rests on.
    mutating func takeBack(_ job: Job, due: ContinuousClock.Instant) {
        let newer = related(to: job)
        var heir: JobID?
        if !newer.isEmpty {
            heir = serve(job, with: newer, due: due)
        } else if job.event.kind == .moved {
            takeBackMove(job.event, of: job.rule)
        } else if job.isHeir || job.previous?.isGivenUp == true, job.mask.contains(.modified),
            let known = files.known(job.rule, job.event.path), !known.hasSameContent(as: job.event.snapshot),
            job.event.snapshot.changed < known.changed
        {
            // Another job has told of a newer state already: what differs from that comes by itself. An older state is
            // known of a file that was renamed before what was written to it had settled. Newer jobs are merged with one
            // that waits: what is known then is what the rule isn't told of, as the times that touch(1) sets.
        } else {
            // A newer job would do the work of both, and the ledger know its file already.
            var before = job.event.before
            if before == nil, job.event.kind != .created {
                // Something was told of before, nobody says what: whatever is there now is another file.
                before = job.event.snapshot.asAnotherFile
            }
            files.set(job.rule, job.event.path, before)
        }
        if job.isTouched || job.previous != nil {
            let message = "the file changed before the action began, and settles again"
            noteSuperseded(job, by: heir, orElse: (message, "changed"))
        } else if heir != job.id {
            changes?.noteGone(job.id)
        }
    }

    /// Makes the ledger forget a move whose new name was gone before anything was done for it.
    private mutating func takeBackMove(_ event: FileEvent, of rule: String) {
        if let from = event.from, files.known(rule, from) == nil { files.set(rule, from, event.before) }
        guard !event.isReplaced, lanes[rule]?.byPath[event.path] == nil,
            files.known(rule, event.path)?.identity == event.snapshot.identity
        else { return }
        files.set(rule, event.path, nil)
    }

    /// Lets newer jobs do the work of one that was not done; the result is the one that does it.
    mutating func serve(_ job: Job, with newer: [Job], due: ContinuousClock.Instant) -> JobID? {
        let events = conflated([job] + newer, for: job)
        let heir: JobID?
        if newer.count == 1, let waiting = newer.first, let event = events.first, events.count == 1,
            waiting.tells(like: event)
        {
            update(waiting, event)
            heir = waiting.id
        } else {
            heir = replace(newer, by: events, like: job, due: due)
        }
        noteInheritance(of: job, heir)
        return heir
    }

    /// Tells the jobs that do the work of one what an action may have done for that.
    ///
    /// Whoever does the work finds what an attempt that was cut off has left. And whatever is told of its path, an action
    /// has been told of it before.
    mutating func noteInheritance(of job: Job, _ heir: JobID?) {
        if job.isInterrupted, let heir, jobs[heir] != nil {
            jobs[heir]?.isInterrupted = true
            changes?.noteOpen(heir, hasFacts: false)
        }
        if job.hasBegun, let heir = pending(job.rule, job.event.path), !heir.isHeir {
            jobs[heir.id]?.isHeir = true
            changes?.noteOpen(heir.id, hasFacts: false)
        }
    }

    /// Puts events in the place of pending jobs.
    ///
    /// The event at the model's path is the model's job, unless an action has been told of something else under that
    /// id; the others take the ids that become free. At another path an action may have begun with a job that waits to
    /// be done again: it is merged there, as at its own path.
    ///
    /// - Returns: The job of the model's path, or the first.
    private mutating func replace(
        _ pending: [Job], by events: [FileEvent], like model: Job, due: ContinuousClock.Instant
    ) -> JobID? {
        for job in pending { job.wasTried ? remove(job) : drop(job) }
        // An id under which somebody may have been told goes to nothing else.
        var free = pending.filter { !$0.wasTried }.map(\.id)
        var heir: JobID?
        var superseded: [Job] = []
        var rest = events[...]
        while let event = rest.popFirst() {
            var id = model.id
            if event.path != model.event.path, let begun = self.pending(model.rule, event.path) {
                remove(begun)
                superseded.append(begun)
                rest = conflated([begun, Job(id: id, rule: model.rule, event: event, mask: model.mask)]) + rest
                continue
            }
            if event.path != model.event.path || model.hasBegun {
                let same = pending.first { $0.event.path == event.path && free.contains($0.id) }?.id
                id = same ?? free.last ?? JobID(now: event.time)
                free.removeAll { $0 == id }
            }
            enqueue(Job(id: id, rule: model.rule, event: event, mask: model.mask), due: due)
            if heir == nil || event.path == model.event.path { heir = id }
        }
        for job in pending {
            noteInheritance(of: job, heir)
            guard job.wasTried else { continue }
            noteSuperseded(job, by: self.pending(job.rule, job.event.path)?.id ?? heir)
        }
        for job in superseded {
            let heir = self.pending(job.rule, job.event.path)?.id
            noteInheritance(of: job, heir)
            noteSuperseded(job, by: heir)
        }
        return heir
    }

    /// Removes a pending job whose work another one does, or nobody; what was tried stays in the history.
    mutating func supersede(_ job: Job, by heir: JobID?) {
        guard job.wasTried else {
            drop(job)
            return
        }
        remove(job)
        noteSuperseded(job, by: heir)
    }

    /// Notes that a job ends without having done its work.
    mutating func noteSuperseded(
        _ job: Job, by heir: JobID?,
        orElse other: (message: String, code: String) = ("what came since leaves nothing to be done", "superseded")
    ) {
        // Under its own id it goes on.
        guard heir != job.id else { return }
        if let heir {
            noteEnd(job, .skipped, "job \(heir) does its work, with newer facts of the file", "superseded")
        } else {
            noteEnd(job, .skipped, other.message, other.code)
        }
    }

    // MARK: What is left to be told

    /// What is left to be told of events that nobody has been told of, in the order in which they came.
    ///
    /// When an action has begun with an event, nobody knows how far it came. That its
    /// path is gone is told then even if the path was new, and so is what its path was
    /// moved from, if the file is back there. Deletions of old names that have another
    /// file by now, of which was told already, are left out.
    ///
    /// - Parameters:
    ///   - jobs: The jobs, oldest first.
    ///   - job: The job whose own path is told of in any case; nil for the newest.
    ///   - isComing: Whether a path is still to be told of by another job.
    /// - Returns: The events.
    func conflated(_ jobs: [Job], for job: Job? = nil, isComing: (PathBytes) -> Bool = { _ in false }) -> [FileEvent] {
        guard let newest = jobs.last else { return [] }
        let job = job ?? newest
        var conflation = Conflation(mask: newest.mask, roots: [newest.event.root])
        for job in jobs { conflation.add(job.event) }
        var events = conflation.takeAll()
        if newest.event.kind == .deleted, jobs.dropLast().contains(where: \.hasBegun),
            !events.contains(where: { $0.path == newest.event.path })
        {
            events.append(newest.event)
        }
        for begun in jobs where begun.hasBegun { events += leftBehind(by: begun, among: jobs, told: events) }
        // The newest is that of a followed file, whose text goes on where that of the others ended.
        let tail = jobs.map(\.event.tail).reduce(nil) { TailText.joined($0, $1) }
        if let tail, let place = events.firstIndex(where: { $0.path == newest.event.path }) {
            events[place].tail = tail
        }
        return events.filter { event in
            event.kind != .deleted || event.path == job.event.path || files.known(job.rule, event.path) == nil
                || isComing(event.path)
        }
    }

    /// What an action that had begun may have left, and what is told does not mend.
    private func leftBehind(by begun: Job, among jobs: [Job], told events: [FileEvent]) -> [FileEvent] {
        func isTold(_ path: PathBytes) -> Bool { events.contains { $0.path == path || $0.from == path } }
        var left: [FileEvent] = []
        let path = begun.event.path
        if begun.event.kind != .deleted, begun.mask.contains(.deleted), !isTold(path),
            files.known(begun.rule, path) == nil
        {
            left.append(begun.event.alone(as: .deleted))
        }
        if begun.event.kind == .moved, begun.mask.contains(.created), let from = begun.event.from, !isTold(from),
            let back = jobs.last(where: { $0.event.kind == .moved && $0.event.path == from })
        {
            left.append(back.event.alone(as: .created))
        }
        return left
    }

    /// The pending jobs that tell of the job's paths, and of the paths that those tell of, oldest first.
    ///
    /// What an action has begun with is told as far as anyone knows, and takes
    /// part only at the job's own path, or if told after the job it would be wrong: that a file was
    /// moved from there, or what has another name with the job.
    func related(to job: Job) -> [Job] {
        guard let lane = lanes[job.rule] else { return [] }
        var found: [JobID: Job] = [:]
        var paths = [job.event.path, job.event.from].compactMap(\.self)
        while let path = paths.popLast() {
            for id in [lane.byPath[path], lane.byFormer[path]].compactMap(\.self) where found[id] == nil {
                guard let other = jobs[id], !other.hasBegun || other.isStale(after: job) else { continue }
                found[id] = other
                paths += [other.event.path, other.event.from].compactMap(\.self)
            }
        }
        return found.values.sorted { places[$0.id]?.sequence ?? 0 < places[$1.id]?.sequence ?? 0 }
    }

    /// When the first of them is due.
    private func firstDue(of jobs: [Job]) -> ContinuousClock.Instant? {
        jobs.compactMap { places[$0.id]?.due }.min()
    }
}

extension Job {
    /// Whether a job with which an action has begun is to be told together with a newer one, since what it tells is not
    /// so any more.
    ///
    /// Another path than the newer one's own takes part only if the rule is told of all that may follow: of what was
    /// there, what is new and what is gone. What was cut off is made again before the newer one is told.
    fileprivate func isStale(after newer: Job) -> Bool {
        if event.path == newer.event.path { return true }
        guard !isInterrupted, mask.isSuperset(of: [.created, .modified, .moved, .deleted]) else { return false }
        // Another file has the name from which this one was moved, or the file has another name by now.
        return event.from == newer.event.path || event.path == newer.event.from
    }

    /// Whether the event tells of the job's own paths.
    fileprivate func tells(like event: FileEvent) -> Bool {
        event.path == self.event.path && event.from == self.event.from
    }
}

extension FileEvent {
    /// The event as one that tells of its path alone.
    fileprivate func alone(as kind: EventKind) -> FileEvent {
        var event = self
        event.kind = kind
        event.from = nil
        event.before = kind == .deleted ? snapshot : nil
        event.isReplaced = false
        event.isByMove = false
        event.changed = []
        event.sameAs = []
        event.children = nil
        event.tail = nil
        if event.author != .notAsked { event.author = .unknown(.unseen) }
        return event
    }
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

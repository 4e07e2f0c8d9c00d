import FileEvents
import PluginProtocol
import Rules

// What a queue does that goes on where an earlier run ended, and what people ask of single jobs.
extension JobQueue {
    /// Takes in a job that was running when the earlier run died.
    ///
    /// It is due at once, and its next attempt knows that this one was cut off;
    /// or a newer job of its path does its work. So the pending ones come first.
    mutating func restoreInterrupted(
        _ job: Job, _ attempt: AttemptRecord, sequence: UInt64, due: ContinuousClock.Instant
    ) {
        changes?.note(attempt, of: job.id)
        var job = job
        job.previous = PreviousAttempt(
            attempt: job.attempt, outcome: attempt.outcome.ending.rawValue, message: attempt.outcome.message)
        job.isInterrupted = true
        let newer = job.isDifference && job.event.tail == nil && !job.isAlone ? related(to: job) : []
        if newer.isEmpty {
            insert(job, due: due, sequence: sequence)
            changes?.noteOpen(job.id, hasFacts: false, position: sequence)
        } else {
            putBack(job, attempt.outcome, due: due, counts: true, hasFacts: false)
        }
    }

    /// Gives the jobs of a rule to another, which may have jobs of the same paths.
    mutating func rename(_ old: String, to new: String) {
        let pending = pendingJobs(of: old)
        for (_, job) in pending { remove(job) }
        lanes[old] = nil
        if let known = refusals.removeValue(forKey: old) { refusals[new, default: [:]].merge(known) { $1 } }
        renameRunning(old, to: new)
        for (place, var job) in pending {
            job.rule = new
            join(job, at: place)
        }
        for (id, (job, _)) in aside where job.rule == old { aside[id]?.0.rule = new }
    }

    /// Gives a pending job the place that it had, or lets one job do its work and that of others of its path.
    private mutating func join(_ job: Job, at place: JobPlace) {
        let others = job.isDifference && job.event.tail == nil && !job.isAlone ? related(to: job) : []
        guard let first = others.compactMap({ places[$0.id]?.sequence }).min(), inForce?.contains(job.rule) ?? true
        else {
            insert(job, due: place.due, sequence: place.sequence)
            return
        }
        if place.sequence < first {
            noteSuperseded(job, by: serve(job, with: others, due: place.due))
        } else {
            take(job, due: place.due) { _ in false }
            let heir = pending(job.rule, job.event.path)?.id
            noteInheritance(of: job, heir)
            noteSuperseded(job, by: heir)
        }
    }

    /// Lets the jobs of all other rules wait, out of sight, until their rules are there again.
    mutating func setAside(except rules: Set<String>) {
        inForce = rules
        for (id, (job, place)) in aside.sorted(by: { $0.value.1.sequence < $1.value.1.sequence })
        where rules.contains(job.rule) {
            aside[id] = nil
            join(job, at: place)
        }
        for rule in lanes.keys where !rules.contains(rule) {
            for (place, job) in pendingJobs(of: rule) {
                remove(job)
                aside[job.id] = (job, place)
            }
            lanes[rule] = nil
        }
    }

    /// Puts a job back whose rule does not run any more, in the order of its lane where it was when it was leased.
    mutating func putAside(_ job: Job, due: ContinuousClock.Instant, hasFacts: Bool) {
        guard let place = leasePlaces[job.id] else { preconditionFailure("a running job that was not leased") }
        insert(job, due: due, sequence: place)
        changes?.noteOpen(job.id, hasFacts: hasFacts, position: place)
    }

    /// How many jobs wait of each rule that does not run.
    var waiting: [String: Int] { aside.values.reduce(into: [:]) { $0[$1.0.rule, default: 0] += 1 } }

    /// Changes the events of all pending jobs, when their files are known by other numbers.
    mutating func mapEvents(_ transform: (inout FileEvent) -> Bool) {
        for job in jobs.jobs {
            var event = job.event
            guard transform(&event) else { continue }
            jobs[job.id]?.event = event
            changes?.noteOpen(job.id, hasFacts: true)
        }
    }

    private func pendingJobs(of rule: String) -> [(JobPlace, Job)] {
        jobs.jobs.filter { $0.rule == rule }
            .compactMap { job in places[job.id].map { ($0, job) } }
            .sorted { $0.0.sequence < $1.0.sequence }
    }

    // MARK: Requests

    /// Makes a dead job pending again, as if it were new; its steps are kept.
    mutating func revive(_ job: Job, due: ContinuousClock.Instant) {
        var job = job
        if !job.isHeir, job.previous == nil {
            job.previous = PreviousAttempt(
                attempt: job.attempt, outcome: Outcome.Ending.failed.rawValue, message: "it was given up")
            job.previous?.isUnbegun = true
        }
        job.previous?.isGivenUp = true
        job.attempt = 0
        job.isInterrupted = false
        let newer = job.isDifference && job.event.tail == nil && !job.isAlone ? related(to: job) : []
        if newer.isEmpty {
            enqueue(job, due: due, hasFacts: false)
        } else {
            let heir = serve(job, with: newer, due: due)
            if let heir, heir != job.id {
                noteEnd(job, .skipped, "job \(heir) does its work, with newer facts of the file", "superseded")
            } else if heir == nil {
                noteEnd(job, .skipped, "what came since leaves nothing to be done", "superseded")
            }
        }
    }

    /// Makes a pending job due at once, as if it were new; false if it is not pending.
    mutating func hasten(_ id: JobID, due: ContinuousClock.Instant) -> Bool {
        if let (job, place) = aside[id] {
            aside[id]?.0.renew()
            aside[id]?.1.due = min(place.due, due)
            changes?.noteOpen(job.id, hasFacts: false)
            return true
        }
        guard var job = jobs[id], places[id] != nil else { return false }
        if job.isAlone {
            jobs[id]?.renew()
            setDue(job, due)
            changes?.noteOpen(job.id, hasFacts: false)
        } else {
            remove(job)
            job.renew()
            enqueue(job, due: due, hasFacts: false)
        }
        return true
    }

    /// Ends a pending job without doing its work; false if it is not pending.
    mutating func discard(_ id: JobID) -> Bool {
        if let (job, _) = aside.removeValue(forKey: id) {
            noteEnd(job, .skipped, "discarded", "discarded")
            return true
        }
        guard let job = jobs[id], places[id] != nil else { return false }
        remove(job)
        noteEnd(job, .skipped, "discarded", "discarded")
        return true
    }
}

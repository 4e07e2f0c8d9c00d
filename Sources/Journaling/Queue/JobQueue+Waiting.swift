import FileEvents
import Rules

// Jobs that are not begun yet, though nothing has failed.
extension JobQueue {
    /// How many pending jobs wait for something that need not come soon.
    var held: Int {
        jobs.values.count { job in
            job.waiting.map { !$0.cause.passesSoon } ?? false && places[job.id] != nil
        }
    }

    /// Makes jobs due that wait, be it only one path's; what rests for another reason goes on resting.
    mutating func wake(rule: String, path: PathBytes?, now: ContinuousClock.Instant) {
        if let path {
            let id = lanes[rule]?.byPath[path] ?? lines[rule]?[path]?.first
            if let id, let job = jobs[id] { wake(job, now) }
        } else {
            for job in jobs.values where job.rule == rule { wake(job, now) }
        }
    }

    /// The job that `ready` has refused for good, if the path has the same content.
    func refusal(_ rule: String, _ path: PathBytes, _ snapshot: Snapshot) -> Refusal? {
        refusals[rule]?[path].flatMap { $0.snapshot.hasSameContent(as: snapshot) ? $0 : nil }
    }

    /// Notes how a job has ended, if `ready` was asked.
    mutating func noteRefusal(_ job: Job, _ state: JobState, _ outcome: Outcome) {
        let path = job.event.path
        if state != .succeeded, outcome.code == Outcome.readyCode {
            refusals[job.rule, default: [:]][path] = Refusal(
                id: job.id, snapshot: job.event.snapshot, message: outcome.message)
        } else if !refusals.isEmpty {
            refusals[job.rule]?[path] = nil
        }
    }

    private mutating func wake(_ job: Job, _ now: ContinuousClock.Instant) {
        guard job.waiting != nil, let place = places[job.id], place.due > now else { return }
        remove(job)
        insert(job, due: now, sequence: place.sequence)
        changes?.noteOpen(job.id, hasFacts: false)
    }
}

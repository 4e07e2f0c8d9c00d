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

    private mutating func wake(_ job: Job, _ now: ContinuousClock.Instant) {
        guard job.waiting != nil, let place = places[job.id], place.due > now else { return }
        remove(job)
        insert(job, due: now, sequence: place.sequence)
        changes?.noteOpen(job.id, hasFacts: false)
    }
}

import FileEvents
import Rules

// Jobs that are not begun yet, though nothing has failed.
extension JobQueue {
    /// How many pending jobs wait for something that need not come soon.
    var held: Int {
        jobs.jobs.count { job in
            job.waiting.map { !$0.cause.passesSoon } ?? false && places[job.id] != nil
        }
    }

    /// Makes jobs due that wait, be it only one path's; what rests for another reason goes on resting.
    mutating func wake(rule: String, path: PathBytes?, now: ContinuousClock.Instant) {
        if let path {
            let id = lanes[rule]?.byPath[path] ?? lines[rule]?[path]?.first
            if let id, let job = jobs[id] { wake(job, now) }
        } else {
            // Whatever waits has been tried, so that it stands first in its line, if in one: it rests in the lane.
            for place in lanes[rule].map({ Array($0.resting.places) }) ?? [] where places[place.job] == place {
                if let job = jobs[place.job] { wake(job, now) }
            }
        }
    }

    /// Sets when a pending job is due; it keeps its place in the line of its path, and the old one in the heap is found
    /// empty later.
    mutating func setDue(_ job: Job, _ due: ContinuousClock.Instant) {
        guard let sequence = places[job.id]?.sequence else { preconditionFailure("a job that is not pending") }
        let place = JobPlace(due: due, sequence: sequence, job: job.id)
        places[job.id] = place
        lanes[job.rule, default: JobLane()].resting.insert(place)
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
        setDue(job, now)
        changes?.noteOpen(job.id, hasFacts: false)
    }
}

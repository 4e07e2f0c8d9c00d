import FileEvents
import Rules

/// Jobs by their ids, each apart from the table: so that is small, and costs little when it grows.
struct JobStore {
    private enum Entry {
        case slim(SlimJob)
        /// What a slim one has no room for.
        case whole(Box<Job>)

        init(_ job: Job) {
            let slim = SlimJob(job)
            // Compared as a whole, so that nothing can get lost which somebody adds to a job.
            self = slim.job(job.id) == job ? .slim(slim) : .whole(Box(job))
        }

        func job(_ id: JobID) -> Job {
            switch self {
            case .slim(let slim): slim.job(id)
            case .whole(let box): box.value
            }
        }
    }

    private var entries: [JobID: Entry] = [:]

    subscript(id: JobID) -> Job? {
        get { entries[id]?.job(id) }
        set { entries[id] = newValue.map(Entry.init) }
    }

    /// All of them, in no order.
    var jobs: some Sequence<Job> { entries.lazy.map { id, entry in entry.job(id) } }

    mutating func removeValue(forKey id: JobID) -> Job? { entries.removeValue(forKey: id)?.job(id) }
}

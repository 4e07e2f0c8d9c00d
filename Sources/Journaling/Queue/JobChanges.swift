import FileEvents
import Rules

/// What has become of jobs since the last commit, for a journal that writes it down.
struct JobChanges {
    /// A job that is finished.
    struct End {
        var job: Job
        var state: JobState
        var message: String
        var code: String?
        /// What the job has left.
        var outputs: [PathBytes] = []
    }

    enum Fate {
        /// Pending or running: the queue has the job.
        case open
        indirect case ended(End)
        /// Nothing is kept of it: others do its work.
        case gone
    }

    /// What of a job's row is another.
    struct Part {
        /// Whether it is new, or its event is another; else only its state is.
        var hasFacts: Bool
        /// Its place in the order of its lane; nil while it keeps the one that it had.
        var position: UInt64?

        fileprivate mutating func add(_ other: Part) {
            if other.hasFacts { hasFacts = true }
            if let position = other.position { self.position = position }
        }
    }

    struct Change {
        var fate: Fate
        var part: Part
        /// What of it the log ahead of the database does not tell yet; nil for nothing.
        var news: Part?
    }

    private(set) var jobs: [JobID: Change] = [:]
    /// The jobs, each once, in the order in which they were changed first.
    private(set) var order: [JobID] = []
    /// Attempts that have ended.
    private(set) var attempts: [EndedAttempt] = []
    /// The jobs of which the log ahead of the database does not tell yet, in that order too, and how many attempts it tells of.
    private(set) var newsOrder: [JobID] = []
    private var toldAttempts = 0

    /// What has become of changes that were to be taken back.
    private(set) var undos: [(changes: KeptChanges, record: UndoRecord)] = []

    var isEmpty: Bool { order.isEmpty && attempts.isEmpty && undos.isEmpty }

    /// Whether the log ahead of the database tells of all jobs and attempts.
    var isTold: Bool { newsOrder.isEmpty && toldAttempts == attempts.count }

    /// The attempts of which the log ahead of the database does not tell yet.
    var newAttempts: ArraySlice<EndedAttempt> { attempts[toldAttempts...] }

    /// Notes that the log ahead of the database tells of everything.
    mutating func noteTold() {
        for id in newsOrder { jobs[id]?.news = nil }
        newsOrder.removeAll(keepingCapacity: true)
        toldAttempts = attempts.count
    }

    mutating func note(_ record: UndoRecord, of changes: KeptChanges) { undos.append((changes, record)) }

    mutating func noteOpen(_ id: JobID, hasFacts: Bool, position: UInt64? = nil) {
        note(id, .open, hasFacts: hasFacts, position: position)
    }

    mutating func noteEnd(_ end: End, hasFacts: Bool) { note(end.job.id, .ended(end), hasFacts: hasFacts) }

    mutating func noteGone(_ id: JobID) { note(id, .gone, hasFacts: false) }

    mutating func note(_ attempt: AttemptRecord, of id: JobID) { attempts.append(attempt, of: id) }

    private mutating func note(_ id: JobID, _ fate: Fate, hasFacts: Bool, position: UInt64? = nil) {
        let part = Part(hasFacts: hasFacts, position: position)
        guard let place = jobs.index(forKey: id) else {
            jobs[id] = Change(fate: fate, part: part, news: part)
            order.append(id)
            newsOrder.append(id)
            return
        }
        jobs.values[place].fate = fate
        jobs.values[place].part.add(part)
        if jobs.values[place].news == nil {
            jobs.values[place].news = part
            newsOrder.append(id)
        } else {
            jobs.values[place].news?.add(part)
        }
    }
}

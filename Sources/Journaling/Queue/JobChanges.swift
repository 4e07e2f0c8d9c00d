import Rules

/// What has become of jobs since the last commit, for a journal that writes it down.
struct JobChanges {
    /// A job that is finished.
    struct End {
        var job: Job
        var state: JobState
        var message: String
        var code: String?
    }

    enum Fate {
        /// Pending or running: the queue has the job.
        case open
        indirect case ended(End)
        /// Nothing is kept of it: others do its work.
        case gone
    }

    struct Change {
        var fate: Fate
        /// Whether it is new, or its event is another; else only its state is.
        var hasFacts: Bool
        /// Its place in the order of its lane; nil while it keeps the one that it had.
        var position: UInt64?
    }

    private(set) var jobs: [JobID: Change] = [:]
    /// The jobs, each once, in the order in which they were changed first.
    private(set) var order: [JobID] = []
    /// Attempts that have ended.
    private(set) var attempts: [(job: JobID, attempt: AttemptRecord)] = []

    /// What has become of changes that were to be taken back.
    private(set) var undos: [(changes: KeptChanges, record: UndoRecord)] = []

    var isEmpty: Bool { order.isEmpty && attempts.isEmpty && undos.isEmpty }

    mutating func note(_ record: UndoRecord, of changes: KeptChanges) { undos.append((changes, record)) }

    mutating func noteOpen(_ id: JobID, hasFacts: Bool, position: UInt64? = nil) {
        note(id, .open, hasFacts: hasFacts, position: position)
    }

    mutating func noteEnd(_ end: End, hasFacts: Bool) { note(end.job.id, .ended(end), hasFacts: hasFacts) }

    mutating func noteGone(_ id: JobID) { note(id, .gone, hasFacts: false) }

    mutating func note(_ attempt: AttemptRecord, of id: JobID) { attempts.append((id, attempt)) }

    private mutating func note(_ id: JobID, _ fate: Fate, hasFacts: Bool, position: UInt64? = nil) {
        guard let place = jobs.index(forKey: id) else {
            jobs[id] = Change(fate: fate, hasFacts: hasFacts, position: position)
            order.append(id)
            return
        }
        jobs.values[place].fate = fate
        if hasFacts { jobs.values[place].hasFacts = true }
        if let position { jobs.values[place].position = position }
    }
}

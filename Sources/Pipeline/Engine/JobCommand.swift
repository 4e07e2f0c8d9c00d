package import FileEvents
package import Rules

/// A file that a person wants a rule to be run for.
package struct JobRequest: Sendable, Hashable {
    /// The id that the job is to have.
    package var id: JobID
    package var rule: String
    package var path: PathBytes

    package init(id: JobID, rule: String, path: PathBytes) {
        self.id = id
        self.rule = rule
        self.path = path
    }
}

/// What a person asks for jobs.
package enum JobCommand: Sendable {
    /// To make pending jobs due at once, and dead letters pending again.
    case retry([JobID])
    /// To end pending jobs, and to forget dead letters.
    case discard([JobID])
    /// To take back what jobs have done.
    case undo([JobID])
    /// To run a rule for files.
    case apply([JobRequest])
}

package import Rules
package import System

/// A file for which a user runs a rule.
package struct JobRequest: Sendable, Hashable {
    /// The id of the job.
    package var id: JobID
    package var rule: String
    package var path: PathBytes

    package init(id: JobID, rule: String, path: PathBytes) { (self.id, self.rule, self.path) = (id, rule, path) }
}

/// A user's request for jobs.
package enum JobCommand: Sendable {
    /// Makes pending jobs due immediately, and failed ones pending again.
    case retry([JobID])
    /// Ends pending jobs, and deletes failed ones.
    case discard([JobID])
    /// Undoes the changes of jobs.
    case undo([JobID])
    /// Runs a rule for files.
    case apply([JobRequest])
}

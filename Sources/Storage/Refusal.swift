package import Rules
package import System

/// A job that finished before its action started, since `ready` has refused it permanently.
package struct Refusal: Sendable, Hashable {
    package var id: JobID
    /// The metadata of the file in the job.
    package var snapshot: Snapshot
    package var message: String

    package init(id: JobID, snapshot: Snapshot, message: String) {
        (self.id, self.snapshot, self.message) = (id, snapshot, message)
    }
}

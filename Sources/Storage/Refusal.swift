import FileEvents
package import Rules
package import System

/// A job that ended before its action began, since `ready` has said no for good.
package struct Refusal: Sendable, Hashable {
    package var id: JobID
    /// The file as the job had it.
    package var snapshot: Snapshot
    package var message: String

    package init(id: JobID, snapshot: Snapshot, message: String) {
        self.id = id
        self.snapshot = snapshot
        self.message = message
    }
}

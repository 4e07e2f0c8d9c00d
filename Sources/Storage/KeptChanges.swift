package import FileEvents
package import Rules
package import System

/// The undoable changes of one attempt at a job, and the result of their undo.
package struct KeptChanges: Sendable, Hashable {
    package var job: JobID
    /// The rule's name.
    package var rule: String
    /// The number and the start time of the attempt.
    package var number: Int
    package var started: Timestamp
    /// The event of the job.
    package var event: FileEvent
    /// The changes in the order in which they were made.
    package var changes: [FileChange]
    /// The result of the undo; nil if there was none.
    package var undo: UndoRecord?

    /// Whether all changes have been undone.
    package var isUndone: Bool { undo?.reasons.allSatisfy { $0 == nil } ?? changes.isEmpty }
}

/// Whether all or some changes of a job have been undone.
package enum Undone: String, Sendable, Hashable {
    case all
    case part

    /// Creates the state; nil if nothing has been undone.
    init?(_ attempts: [KeptChanges]) {
        guard attempts.contains(where: { $0.undo?.reasons.contains { $0 == nil } ?? false }) else { return nil }
        self = attempts.allSatisfy(\.isUndone) ? .all : .part
    }
}

/// The result of undoing an attempt's changes.
package struct UndoRecord: Sendable, Hashable {
    package var time: Timestamp
    /// For each change, the reason why it was not undone; nil if it was.
    package var reasons: [String?]

    package init(time: Timestamp, reasons: [String?]) { (self.time, self.reasons) = (time, reasons) }
}

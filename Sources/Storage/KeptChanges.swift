package import FileEvents
package import Rules
package import System

/// What one attempt at a job did that can be taken back, and what has been.
package struct KeptChanges: Sendable, Hashable {
    package var job: JobID
    /// The rule's name.
    package var rule: String
    /// The number of the attempt, and when it began.
    package var number: Int
    package var started: Timestamp
    /// What the job was for.
    package var event: FileEvent
    /// In the order in which they were made.
    package var changes: [FileChange]
    /// What became of them when somebody asked for it; nil as long as nobody has.
    package var undo: UndoRecord?

    /// Whether all of it has been taken back.
    package var isUndone: Bool { undo?.reasons.allSatisfy { $0 == nil } ?? changes.isEmpty }
}

/// How much of what a job did has been taken back.
package enum Undone: String, Sendable, Hashable {
    case all
    case part

    /// Nil when nothing has been taken back.
    init?(_ attempts: [KeptChanges]) {
        let isWhole = attempts.allSatisfy(\.isUndone)
        let hasAny = attempts.contains { $0.undo?.reasons.contains { $0 == nil } ?? false }
        guard hasAny else { return nil }
        self = isWhole ? .all : .part
    }
}

/// What became of an attempt's changes that were to be taken back.
package struct UndoRecord: Sendable, Hashable {
    package var time: Timestamp
    /// For each change why it still stands; nil where it was taken back.
    package var reasons: [String?]

    package init(time: Timestamp, reasons: [String?]) {
        self.time = time
        self.reasons = reasons
    }
}

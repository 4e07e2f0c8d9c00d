package import FileEvents
package import Globbing
package import Records
package import Rules
package import System

/// A query for jobs of a journal; empty properties match everything.
package struct JournalQuery: Sendable {
    /// A condition on paths.
    package enum Paths: Sendable, Hashable {
        /// The paths that match; the glob is absolute.
        case matching(Glob)
        /// The path itself, and everything below it.
        case inside(PathBytes)
    }

    package var states: Set<JobState> = []
    package var rule: String?
    package var paths: Paths?
    /// Matches jobs that finished since then, and unfinished ones that were created since then.
    package var since: Timestamp?
    /// Matches only jobs after this position in the list.
    package var before: JobPosition?
    /// The maximum number of jobs; nil for all.
    package var limit: Int?

    package init(
        states: Set<JobState> = [], rule: String? = nil, paths: Paths? = nil, since: Timestamp? = nil, limit: Int? = nil
    ) {
        (self.states, self.rule, self.paths, self.since, self.limit) = (states, rule, paths, since, limit)
    }

    /// Whether the path matches.
    package func takes(_ path: PathBytes) -> Bool {
        switch paths {
        case nil: true
        case .matching(let glob): glob.matches(path.bytes)
        case .inside(let directory): path.isInside(directory)
        }
    }

    /// The bounds of all matching paths in SQLite's byte order: from the first, inclusive, to the second, exclusive.
    var pathBounds: (from: [UInt8], below: [UInt8])? {
        let root: [UInt8]
        switch paths {
        case nil: return nil
        case .matching(let glob): root = glob.root
        case .inside(let directory): root = directory.bytes
        }
        guard root.count > 1, root.first == .slash else { return nil }
        // The upper bound ends in the character after the slash: everything below the root is in between.
        return (root, root + [.slash + 1])
    }
}

/// A job in the journal.
package struct JobEntry: Sendable, Hashable {
    package var id: JobID
    package var rule: String
    package var path: PathBytes
    /// The name of the event.
    package var event: String
    package var state: JobState
    package var attempt: Int
    /// The creation time of the job.
    package var created: Timestamp
    /// The due time of a pending job.
    package var due: Timestamp?
    package var ended: Timestamp?
    package var message: String?
    package var code: String?
    /// The files that it created, as reported by its action.
    package var outputs: [PathBytes] = []
    /// Nil if none of its changes were undone.
    package var undone: Undone?
    /// The later job that has processed its file.
    package var supersededBy: JobID?

    /// Whether there is a job with an id; otherwise its path is due.
    package var hasJob: Bool { !id.description.isEmpty }

    /// The code of a job whose row was unreadable when a run loaded it.
    static let unreadableCode = "unreadable-row"

    /// Whether the job can't run because its event is unreadable.
    package var isUnreadable: Bool { state == .failed && code == Self.unreadableCode }

    /// The finish time, or the creation time of an unfinished job.
    package var time: Timestamp { ended ?? created }

    /// The position in a list of jobs, the newest first.
    package var position: JobPosition { JobPosition(time: time, id: id) }
}

extension JobEntry {
    /// Creates the entry of a path that is due; the rule has no job for it until its action starts.
    package init(
        due path: PathBytes, rule: String, event: EventKind, since: Timestamp, until: Timestamp?, message: String?
    ) {
        self.init(
            id: JobID(""), rule: rule, path: path, event: event.rawValue, state: .pending, attempt: 0, created: since,
            due: until, message: message)
    }
}

/// The position of a job in a list sorted by the displayed time.
package struct JobPosition: Sendable, Hashable, CustomStringConvertible {
    package var time: Timestamp
    package var id: JobID

    package var description: String { "\(time.columnValue)-\(id)" }
}

extension JobPosition {
    /// Parses ``description``; nil for any other string.
    package init?(_ text: String) {
        let parts = text.split(separator: "-", maxSplits: 1)
        guard parts.count == 2, let time = Int64(parts[0]) else { return nil }
        self.init(time: Timestamp(columnValue: time), id: JobID(String(parts[1])))
        guard id.isWellFormed else { return nil }
    }
}

/// A job with all its details in the journal.
package struct JobDetails: Sendable, Hashable {
    package var job: JobEntry
    /// Whether the previous attempt was interrupted.
    package var isInterrupted: Bool
    /// The event; nil if the row is unreadable.
    package var event: FileEvent?
    /// The attempts in order.
    package var attempts: [AttemptEntry]
}

/// An attempt in the journal.
package struct AttemptEntry: Sendable, Hashable {
    package var number: Int
    package var started: Timestamp
    package var duration: Duration
    /// The name of the outcome.
    package var outcome: String
    package var message: String
    package var code: String?
    package var status: Int32?
    package var signal: Int32?
    package var log: String?
    /// The request in JSON.
    package var request: String?
    /// The changes that can be undone.
    package var changes: [FileChange] = []
    /// The result of the last undo; nil if there was none.
    package var undo: UndoRecord?
}

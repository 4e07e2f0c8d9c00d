package import FileEvents
package import Globbing
package import PluginProtocol
package import Rules
package import System

/// Which jobs of a journal are wanted; what is left empty asks for nothing.
package struct JournalQuery: Sendable {
    /// Which paths are wanted.
    package enum Paths: Sendable, Hashable {
        /// Those that match; the glob is absolute.
        case matching(Glob)
        /// The path itself, and all that is below it.
        case inside(PathBytes)
    }

    package var states: Set<JobState> = []
    package var rule: String?
    package var paths: Paths?
    /// Jobs that ended since then, and of those that have not ended the ones that were found since then.
    package var since: Timestamp?
    /// Only jobs that come after this place in the list.
    package var before: JobPosition?
    /// Most jobs; nil for all.
    package var limit: Int?

    package init(
        states: Set<JobState> = [], rule: String? = nil, paths: Paths? = nil, since: Timestamp? = nil, limit: Int? = nil
    ) {
        self.states = states
        self.rule = rule
        self.paths = paths
        self.since = since
        self.limit = limit
    }

    /// Whether the path is one of those that are wanted.
    package func takes(_ path: PathBytes) -> Bool {
        switch paths {
        case nil: true
        case .matching(let glob): glob.matches(path.bytes)
        case .inside(let folder): path.isInside(folder)
        }
    }

    /// The bounds of all paths that are wanted, as SQLite compares bytes: from the first to below the second.
    var pathBounds: (from: [UInt8], below: [UInt8])? {
        let root: [UInt8]
        switch paths {
        case nil: return nil
        case .matching(let glob): root = glob.root
        case .inside(let folder): root = folder.bytes
        }
        guard root.count > 1, root.first == .slash else { return nil }
        // The character after the slash: between them is all that is below the root.
        return (root, root + [.slash + 1])
    }
}

/// A job as the journal has it.
package struct JobEntry: Sendable, Hashable {
    package var id: JobID
    package var rule: String
    package var path: PathBytes
    /// The word of the event.
    package var event: String
    package var state: JobState
    package var attempt: Int
    /// When the job was made.
    package var created: Timestamp
    /// When it is due, while it is pending.
    package var due: Timestamp?
    package var ended: Timestamp?
    package var message: String?
    package var code: String?
    /// The files that it has left, by the word of its action.
    package var outputs: [PathBytes] = []
    /// Nil when nothing that it did was taken back.
    package var undone: Undone?

    /// Creates the entry of a path that is due: the rule has no job for it until its action starts.
    package init(
        due path: PathBytes, rule: String, event: EventKind, since: Timestamp, until: Timestamp?, message: String?
    ) {
        id = JobID("")
        (self.rule, self.path, self.event, state, attempt) = (rule, path, event.rawValue, .pending, 0)
        (created, due, self.message) = (since, until, message)
    }

    init(
        id: JobID, rule: String, path: PathBytes, event: String, state: JobState, attempt: Int, created: Timestamp,
        due: Timestamp?, ended: Timestamp?, message: String?, code: String?, outputs: [PathBytes], undone: Undone?
    ) {
        (self.id, self.rule, self.path, self.event) = (id, rule, path, event)
        (self.state, self.attempt, self.created, self.due, self.ended) = (state, attempt, created, due, ended)
        (self.message, self.code, self.outputs, self.undone) = (message, code, outputs, undone)
    }

    /// Whether there is a job, with an id; otherwise its path is due.
    package var hasJob: Bool { !id.description.isEmpty }

    /// The code of a job whose row made no sense when a run was to go on with it.
    static let unreadableCode = "unreadable-row"

    /// Whether nobody can run it, as nobody knows what it was to be told.
    package var isUnreadable: Bool { state == .dead && code == Self.unreadableCode }

    /// When it ended, or was made.
    package var time: Timestamp { ended ?? created }

    /// Its place in a list of jobs, the newest first.
    package var position: JobPosition { JobPosition(time: time, id: id) }
}

/// The place of a job in a list by the time that is shown of it.
package struct JobPosition: Sendable, Hashable, CustomStringConvertible {
    package var time: Timestamp
    package var id: JobID

    init(time: Timestamp, id: JobID) {
        self.time = time
        self.id = id
    }

    /// Reads what ``description`` has written; nil for anything else.
    package init?(_ text: String) {
        let parts = text.split(separator: "-", maxSplits: 1)
        guard parts.count == 2, let time = Int64(parts[0]) else { return nil }
        id = JobID(String(parts[1]))
        guard id.isWellFormed else { return nil }
        self.time = Timestamp(columnValue: time)
    }

    package var description: String { "\(time.columnValue)-\(id)" }
}

/// A job with all that the journal knows of it.
package struct JobDetails: Sendable, Hashable {
    package var job: JobEntry
    /// Whether the attempt before was cut off.
    package var isInterrupted: Bool
    /// Nil when what the journal has of it makes no sense.
    package var event: FileEvent?
    /// What the finished steps ended in, as the journal has it.
    package var steps: [JSONValue]
    /// In their order.
    package var attempts: [AttemptEntry]
}

/// An attempt as the journal has it.
package struct AttemptEntry: Sendable, Hashable {
    package var number: Int
    package var started: Timestamp
    package var duration: Duration
    /// The word of the outcome.
    package var outcome: String
    package var message: String
    package var code: String?
    package var status: Int32?
    package var signal: Int32?
    package var log: String?
    /// The request, JSON.
    package var request: String?
    /// What it did that can be taken back.
    package var changes: [FileChange] = []
    /// What became of that when somebody asked for it.
    package var undo: UndoRecord?
}

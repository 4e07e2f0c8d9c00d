package import FileEvents
package import FileWatching
package import Rules

/// What the engine tells the command, on the engine's thread and in order.
package enum EngineReport: Sendable {
    /// Every watch is live.
    case ready(folders: Int, rules: Int)
    /// An attempt ended.
    case attempt(AttemptReport)
    /// Something about the watching, other than `ready`.
    case watching(WatchReport)
    /// A file has been open for writing for so long; it is still waited for.
    case stillWritten(PathBytes, for: Duration)
    /// A path can't be looked at; what is known of it stays.
    case unreadable(PathBytes, errno: Int32)
    /// The stop was asked for: so many jobs are finished first.
    case draining(jobs: Int)
}

/// One attempt, as a line of the log.
package struct AttemptReport: Sendable {
    package var time: Timestamp
    package var rule: String
    package var event: EventKind
    package var path: PathBytes
    /// The former path of a moved file.
    package var from: PathBytes?
    package var job: JobID
    package var attempt: Int
    package var maximumAttempts: Int
    /// The action's name; of a list all of them, joined by `+`.
    package var action: String
    package var outcome: Outcome
    package var duration: Duration
    /// Where the job stands now; `pending` when it is tried again.
    package var state: JobState
    /// The pause before the next attempt.
    package var pause: Duration?
}

/// How a run of the engine ended.
package struct EngineSummary: Sendable {
    package var succeeded: Int
    package var skipped: Int
    package var dead: Int
    /// Accepted, but not finished when the engine stopped.
    package var unfinished: Int
    /// Paths that were still settling.
    package var unsettled: [PathBytes]
    /// Whether everything was ended at once.
    package var isForced: Bool
    /// Why the engine could not go on.
    package var fault: WatchError?
}

import FileEvents
package import Rules
package import System

/// The wait of one job that is logged once and shown in the status.
package struct LongWait: Sendable, Hashable {
    package var rule: String
    package var path: PathBytes
    package var waiting: Waiting
    /// The time of the event.
    package var since: Timestamp
    /// The time at which the wait ends; nil if that is not known.
    package var until: Timestamp?

    package init(rule: String, path: PathBytes, waiting: Waiting, since: Timestamp, until: Timestamp?) {
        (self.rule, self.path, self.waiting, self.since, self.until) = (rule, path, waiting, since, until)
    }
}

/// The waits of a rule's jobs that are longer than ten minutes, and those for files that cannot be read.
package struct LongWaits {
    /// The length from which a wait is recorded.
    package static let threshold = Duration.seconds(600)
    /// The maximum number of waits of a rule; `alight jobs` lists all.
    private static let most = 20

    package private(set) var all: [PathBytes: LongWait] = [:]

    package init() {}

    /// Records a wait if it is long.
    ///
    /// - Returns: Whether it was not recorded before.
    package mutating func record(_ wait: LongWait, at now: Timestamp) -> Bool {
        let known = all[wait.path]
        let length = max(wait.until ?? now, now).since(wait.since)
        guard wait.waiting.cause == .unreadable || length >= Self.threshold, known != nil || all.count < Self.most
        else { return false }
        all[wait.path] = wait
        return known?.since != wait.since || known?.waiting.cause != wait.waiting.cause
    }

    /// Removes the waits of the paths for which no job waits.
    package mutating func keep(where isWaiting: (PathBytes) -> Bool) {
        if !all.isEmpty { all = all.filter { isWaiting($0.key) } }
    }
}

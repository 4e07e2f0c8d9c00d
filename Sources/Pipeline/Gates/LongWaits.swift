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
}

/// The waits of a rule's jobs that are longer than ten minutes, and those for files that cannot be read.
struct LongWaits {
    /// The length from which a wait is recorded.
    static let threshold = Duration.seconds(600)
    /// The maximum number of waits of a rule; `alight jobs` lists all.
    private static let most = 20

    private(set) var all: [PathBytes: LongWait] = [:]

    /// Records a wait if it is long.
    ///
    /// - Returns: Whether it was not recorded before.
    mutating func record(_ wait: LongWait, at now: Timestamp) -> Bool {
        let known = all[wait.path]
        let length = max(wait.until ?? now, now).since(wait.since)
        guard wait.waiting.cause == .unreadable || length >= Self.threshold, known != nil || all.count < Self.most
        else { return false }
        all[wait.path] = wait
        return known?.since != wait.since || known?.waiting.cause != wait.waiting.cause
    }

    /// Removes the waits of the paths for which no job waits.
    mutating func keep(where isWaiting: (PathBytes) -> Bool) {
        if !all.isEmpty { all = all.filter { isWaiting($0.key) } }
    }
}

extension Engine {
    /// Records and reports a wait if it is long; one without a known end is checked again when it becomes long.
    func record(_ wait: inout GateWait, of event: FileEvent, _ state: RuleState) {
        let waiting = wait.waiting
        guard waiting.cause != .busy, waiting.cause != .loop else { return }
        let now = host.clock.time()
        let left = LongWaits.threshold - now.since(event.time)
        if wait.end == nil, left > .zero, let until = wait.until {
            wait.until = min(until, host.clock.now() + left)
        }
        let long = LongWait(
            rule: state.rule.name, path: event.path, waiting: waiting, since: event.time, until: wait.end)
        // An incomplete set is reported with all of its files.
        let isReported = waiting.cause == .group && wait.until == nil
        if state.waits.record(long, at: now), !isReported { report(.longWait(long)) }
    }
}

package import FileEvents
import Reconciling
import Rules
import Settling
import Storage
import Synchronization
package import System

/// A path that waits for its action, and has no job until the action starts.
package struct DuePath: Sendable, Hashable {
    package var rule: String
    package var path: PathBytes
    /// The kind of the event that it would have now.
    package var event: EventKind
    /// The time at which it last settled.
    package var since: Timestamp
    /// The reason why it waits; nil if it only waits for a slot.
    package var reason: String?
    /// The time until which it waits, if known.
    package var until: Timestamp?
}

/// A request for due paths, which the engine's thread answers.
struct DuePathRequest: Sendable {
    var rule: String?
    var limit: Int
    var isWanted: @Sendable (PathBytes) -> Bool
}

extension Engine {
    /// Returns due paths, the latest first; nil if the engine's thread does not answer in time.
    ///
    /// - Parameters:
    ///   - rule: The name of the rule; nil for all.
    ///   - limit: The maximum number of paths.
    ///   - timeout: The maximum time to wait.
    ///   - isWanted: Whether a path is included.
    /// - Returns: The paths.
    package func duePaths(
        of rule: String? = nil, limit: Int, within timeout: Duration,
        where isWanted: @escaping @Sendable (PathBytes) -> Bool = { _ in true }
    ) -> [DuePath]? {
        guard let request = try? Request<[DuePath]>() else { return nil }
        dueRequests.withLock { $0.append((DuePathRequest(rule: rule, limit: limit, isWanted: isWanted), request)) }
        mailbox.wake()
        return request.wait(until: .now + timeout)
    }
}

extension DuePathRequest {
    func paths(
        _ dispatcher: borrowing Dispatcher, _ reconciler: inout Reconciler, at now: ContinuousClock.Instant
    ) -> [DuePath] {
        let time = dispatcher.engine.host.clock.time()
        var paths: [DuePath] = []
        for state in dispatcher.jobs.rules {
            let name = state.rule.name
            guard rule ?? name == name else { continue }
            let isPaused = dispatcher.pauses.hold(name)
            for due in reconciler.views[state.index].duePaths(limit: limit, where: isWanted) {
                let (reason, until) = isPaused ? ("the rule is paused", nil) : state.wait(of: due)
                paths.append(
                    DuePath(
                        rule: name, path: due.path, event: due.kind, since: due.time, reason: reason,
                        until: until.map { time.advanced(by: $0 - now) }))
            }
        }
        paths.sort { ($1.since, $0.path, $0.rule) < ($0.since, $1.path, $1.rule) }
        return Array(paths.prefix(limit))
    }
}

extension RuleState {
    /// Returns the reason why a due path waits, and the end of the wait.
    fileprivate func wait(of due: Reconciler.DuePath) -> (reason: String?, until: ContinuousClock.Instant?) {
        if let reason = due.reason { return (reason.text, due.until) }
        switch due.gate?.name {
        case LoopGuard.gate.name: return ("the rule has run too often for it", due.until)
        case "busy": return ("an action runs for it", nil)
        default: break
        }
        if let other = due.other { return ("it waits for '\(other)'", due.until) }
        if let breaker, breaker.isOpen {
            return ("the attempts of the rule fail, and run one at a time", breaker.nextProbe)
        }
        return (nil, due.until ?? batch?.deadline)
    }
}

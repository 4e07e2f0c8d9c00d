package import FileEvents
package import Gates
import Jobs
import Reconciling
import Records
import Rules
import Running
import Settling
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

/// The due paths of an engine, and the waits that hold all jobs of its rules.
package struct DuePaths: Sendable {
    /// The paths, the latest first.
    package var paths: [DuePath] = []
    /// The waits by the names of the rules.
    package var holds: [String: RuleGates.Hold] = [:]
}

/// A request for due paths, which the engine's thread answers.
struct DuePathRequest: Sendable {
    var rule: String?
    var limit: Int
    var isWanted: @Sendable (PathBytes) -> Bool
}

/// The requests for due paths that have no answer yet.
final class DuePathRequests: Sendable {
    private let open = Mutex<[(DuePathRequest, Request<DuePaths>)]>([])

    func add(_ wanted: DuePathRequest, _ request: Request<DuePaths>) { open.withLock { $0.append((wanted, request)) } }

    func take() -> [(DuePathRequest, Request<DuePaths>)] {
        open.withLock { open in
            defer { open = [] }
            return open
        }
    }
}

extension Engine {
    /// Returns due paths, and what holds rules; nil if the engine's thread does not answer in time.
    ///
    /// - Parameters:
    ///   - rule: The name of the rule; nil for all.
    ///   - limit: The maximum number of paths.
    ///   - timeout: The maximum time to wait.
    ///   - isWanted: Whether a path is included.
    /// - Returns: The paths, and the waits of rules.
    package func duePaths(
        of rule: String? = nil, limit: Int, within timeout: Duration,
        where isWanted: @escaping @Sendable (PathBytes) -> Bool = { _ in true }
    ) -> DuePaths? {
        let request = Request<DuePaths>()
        dueRequests.add(DuePathRequest(rule: rule, limit: limit, isWanted: isWanted), request)
        context.mailbox.wake()
        return request.wait(until: .now + timeout)
    }
}

extension DuePathRequest {
    func answer(
        _ dispatcher: borrowing Dispatcher, _ reconciler: inout Reconciler, at now: ContinuousClock.Instant
    ) -> DuePaths {
        let time = dispatcher.gateTime(reconciler, at: now)
        var answer = DuePaths()
        for state in dispatcher.jobs.rules {
            let name = state.rule.name
            guard rule ?? name == name else { continue }
            let hold = state.ruleGates.hold(isPaused: dispatcher.pauses.hold(name), at: time)
            answer.holds[name] = hold
            for due in reconciler.views[state.index].duePaths(limit: limit, where: isWanted) {
                var path = DuePath(rule: name, path: due.path, event: due.kind, since: due.time)
                if let hold {
                    (path.reason, path.until) = (hold.waiting.message, hold.end)
                } else {
                    path.reason = due.reason?.text ?? due.other.map { "it waits for '\($0)'" }
                    path.until = due.reason?.end ?? due.until.map(time.time(of:))
                }
                answer.paths.append(path)
            }
        }
        answer.paths.sort { ($1.since, $0.path, $0.rule) < ($0.since, $1.path, $1.rule) }
        answer.paths.removeLast(max(0, answer.paths.count - limit))
        return answer
    }
}

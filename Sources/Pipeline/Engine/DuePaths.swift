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

/// The due paths of an engine, and the waits that hold all jobs of its rules.
package struct DuePaths: Sendable {
    /// The paths, the latest first.
    package var paths: [DuePath] = []
    /// The waits by the names of the rules.
    package var holds: [String: RuleGates.Hold] = [:]
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
        dueRequests.withLock { $0.append { request.end($0.duePaths(of: rule, limit: limit, where: isWanted)) } }
        context.mailbox.wake()
        return request.wait(until: .now + timeout)
    }
}

extension EngineLoop {
    func answerDueRequests() {
        let requests = owner.dueRequests.withLock { requests in
            defer { requests = [] }
            return requests
        }
        for answer in requests { answer(self) }
    }

    func duePaths(
        of wanted: String? = nil, limit: Int = .max, where isWanted: (PathBytes) -> Bool = { _ in true }
    ) -> DuePaths {
        let time = dispatcher.gateTime(at: now)
        var answer = DuePaths()
        for state in dispatcher.jobs.rules where wanted ?? state.rule.name == state.rule.name {
            let hold = state.ruleGates.hold(isPaused: dispatcher.pauses.hold(state.rule.name), at: time)
            answer.holds[state.rule.name] = hold
            for var path in state.view.duePaths(limit: limit, where: isWanted) {
                path.rule = state.rule.name
                if let hold { (path.reason, path.until) = (hold.waiting.message, hold.end) }
                answer.paths.append(path)
            }
        }
        answer.paths.sort { ($1.since, $0.path, $0.rule) < ($0.since, $1.path, $1.rule) }
        answer.paths.removeLast(max(0, answer.paths.count - limit))
        return answer
    }
}

package import FileEvents
package import Gates
import Reconciling
package import Rules
package import System

/// The state of one running rule.
///
/// It belongs to the engine's thread. It is a class, so that a rule with its many properties is not copied for each
/// job.
package final class RuleState {
    package let id: RuleID
    /// The index in the ruleset, which is that of its view.
    package var index = 0
    package private(set) var rule: Rule
    /// The gates of its paths, and of the rule as a whole.
    package var gates: Gates
    package var ruleGates: RuleGates
    /// Its unfinished jobs.
    package var jobs = JobTable()
    /// The number of jobs of the next attempt, if the actions are brief; 1 after a failure.
    private var briefCount = 1
    /// The opening time for which waiting jobs were already reported.
    package var reportedOpening: Timestamp?
    /// The long waits of its jobs.
    package var waits = LongWaits()
    /// The last report of an endless chain of outputs.
    package var reportedChain: ContinuousClock.Instant?
    /// The sets that were already reported as incomplete.
    package var reportedSets: Set<PathBytes> = []
    /// The job before which `ready` was different: refusals of earlier jobs do not count.
    package var readyChange: JobID?

    package init(id: RuleID, rule: Rule) {
        (self.id, self.rule) = (id, rule)
        gates = Gates(rule)
        ruleGates = RuleGates(rule)
    }

    /// Sets another version of the rule; a batch and waiting jobs are unaffected, unless their times have changed.
    package func change(to rule: Rule, at time: Timestamp) {
        if rule.ready != self.rule.ready { readyChange = JobID(now: time) }
        self.rule = rule
        gates.change(to: rule)
        ruleGates.change(to: rule)
        briefCount = 1
        reportedOpening = nil
    }

    /// The maximum number of jobs in one attempt at brief actions: one commit then serves several jobs.
    private static let mostBrief = 64

    /// The maximum number of jobs of the next attempt.
    package var nextSize: Int {
        if ruleGates.breaker?.isOpen == true { return 1 }
        if let batch = rule.batch { return batch.files }
        return ruleGates.breaker == nil && rule.runsTogether ? briefCount : 1
    }

    /// Doubles the number of brief jobs of the next attempt, or resets it after a failure.
    package func recordBrief(_ result: AttemptResult) {
        guard result.rule.runsTogether else { return }
        let hasSucceeded = result.parts.allSatisfy(\.hasSucceeded)
        briefCount = hasSucceeded ? min(Self.mostBrief, max(2, 2 * result.parts.count, briefCount)) : 1
    }
}

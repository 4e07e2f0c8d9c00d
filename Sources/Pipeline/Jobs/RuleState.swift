import Gates
import FileEvents
import Reconciling
import Rules
import System

/// The state of one running rule.
///
/// It belongs to the engine's thread. It is a class, so that a rule with its many properties is not copied for each
/// job.
final class RuleState {
    let id: RuleID
    /// The index in the ruleset, which is that of its view.
    var index = 0
    private(set) var rule: Rule
    /// The gates of its paths, and of the rule as a whole.
    var gates: Gates
    var ruleGates: RuleGates
    /// Its unfinished jobs.
    var jobs = JobTable()
    /// The number of jobs of the next attempt, if the actions are brief; 1 after a failure.
    private var briefCount = 1
    /// The opening time for which waiting jobs were already reported.
    var reportedOpening: Timestamp?
    /// The long waits of its jobs.
    var waits = LongWaits()
    /// The last report of an endless chain of outputs.
    var reportedChain: ContinuousClock.Instant?
    /// The sets that were already reported as incomplete.
    var reportedSets: Set<PathBytes> = []
    /// The job before which `ready` was different: refusals of earlier jobs do not count.
    var readyChange: JobID?

    init(id: RuleID, rule: Rule) {
        (self.id, self.rule) = (id, rule)
        gates = Gates(rule)
        ruleGates = RuleGates(rule)
    }

    /// Sets another version of the rule; a batch and waiting jobs are unaffected, unless their times have changed.
    func change(to rule: Rule, at time: Timestamp) {
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
    var nextSize: Int {
        if ruleGates.breaker?.isOpen == true { return 1 }
        if let batch = rule.batch { return batch.files }
        return ruleGates.breaker == nil && rule.runsTogether ? briefCount : 1
    }

    /// Doubles the number of brief jobs of the next attempt, or resets it after a failure.
    func recordBrief(_ result: Attempt.Result) {
        guard result.rule.runsTogether else { return }
        let hasSucceeded = result.parts.allSatisfy(\.hasSucceeded)
        briefCount = hasSucceeded ? min(Self.mostBrief, max(2, 2 * result.parts.count, briefCount)) : 1
    }
}

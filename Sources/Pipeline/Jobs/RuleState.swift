package import FileEvents
package import Gates
package import Reconciling
package import Rules
package import System

/// The state of one running rule.
///
/// It belongs to the engine's thread. It is a class, so that a rule with its many properties is not copied for each
/// job.
package final class RuleState {
    package private(set) var rule: Rule { didSet { shared = Box(rule) } }
    /// The rule, for its attempts.
    package private(set) var shared: Box<Rule>
    /// Its due paths and its offers.
    package let view: ViewReconciler
    /// The gates of its paths, and of the rule as a whole.
    package var gates: Gates
    package var ruleGates: RuleGates
    /// Its unfinished jobs.
    package var jobs = JobTable()
    /// The number of brief jobs that run together next; 1 after a failure.
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

    package init(_ rule: Rule, _ view: ViewReconciler) {
        (self.rule, shared, self.view) = (rule, Box(rule), view)
        gates = Gates(rule)
        ruleGates = RuleGates(rule)
    }

    package var id: RuleID { view.view.id }
    /// The index in the ruleset, which is that of its view.
    package var index: Int { view.index }

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
    /// The maximum number of attempts in one series.
    private static let mostInSeries = 16
    /// The time within which the attempts of a series are expected to start.
    package static let seriesTime = Duration.milliseconds(20)

    /// The maximum number of jobs of the next attempt.
    package var nextSize: Int {
        if ruleGates.breaker?.isOpen == true { return 1 }
        if let batch = rule.batch { return batch.files }
        return ruleGates.breaker == nil && rule.runsTogether ? briefCount : 1
    }

    /// The maximum number of attempts of the next series.
    package var nextLength: Int { ruleGates.breaker == nil && rule.runsInSeries ? briefCount : 1 }

    /// Doubles the number of brief jobs that run together, as far as their duration allows, or resets it after a
    /// failure.
    package func recordBrief(_ results: [AttemptResult]) {
        guard let rule = results.first?.rule.value, rule.runsTogether || rule.runsInSeries else { return }
        let longest = max(results.lazy.map(\.duration).max() ?? .zero, .microseconds(1))
        let most = rule.runsTogether ? Self.mostBrief : min(Self.mostInSeries, Int(Self.seriesTime / longest))
        let count = results.reduce(0) { $0 + $1.parts.count }
        briefCount = results.allSatisfy(\.hasSucceeded) ? max(1, min(most, max(2, 2 * count, briefCount))) : 1
    }

    /// Resets the number of brief jobs that run together, because one of them took longer than expected.
    package func resetBrief() { briefCount = 1 }
}

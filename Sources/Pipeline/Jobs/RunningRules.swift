package import FileEvents
package import Reconciling
package import Rules
package import System

/// The running rules, in the order of the ruleset, which is that of the reconciler's views.
package struct RunningRules: RandomAccessCollection {
    package private(set) var ruleset: Ruleset
    private let reconciler: Reconciler
    private var states: [RuleState] = []
    private var byID: [RuleID: RuleState] = [:]
    /// The rules that may have stored jobs.
    private var storing: Set<Int> = []

    package init(_ ruleset: Ruleset, _ reconciler: Reconciler, at time: Timestamp) {
        (self.ruleset, self.reconciler) = (ruleset, reconciler)
        _ = change(to: ruleset, at: time)
    }

    package var startIndex: Int { 0 }
    package var endIndex: Int { states.count }
    package subscript(index: Int) -> RuleState { states[index] }

    /// Returns the rule with the id; nil if it does not run.
    package subscript(id: RuleID) -> RuleState? { byID[id] }

    /// Returns the rule with the name; nil if it does not run.
    package subscript(name: String) -> RuleState? { ruleset.index(of: name).map { states[$0] } }

    /// Sets other rules, whose views the reconciler has; those that are running retain their jobs.
    ///
    /// - Returns: The new names of renamed rules by their former names.
    package mutating func change(to ruleset: Ruleset, at time: Timestamp) -> [String: String] {
        var names: [String: String] = [:]
        states = zip(ruleset.rules, reconciler.views).map { rule, view in
            guard let state = byID[view.view.id] else { return RuleState(rule, view) }
            if state.rule.name != rule.name { names[state.rule.name] = rule.name }
            state.change(to: rule, at: time)
            return state
        }
        byID = Dictionary(uniqueKeysWithValues: states.map { ($0.id, $0) })
        self.ruleset = ruleset
        storing = Set(states.indices)
        return names
    }

    /// The rules that may have jobs or due paths; the others cost nothing.
    package var active: [RuleState] { reconciler.shared.active.union(storing).map { states[$0] } }

    /// Removes the rules without jobs from ``active``.
    package mutating func forgetIdle() { storing = storing.filter { states[$0].jobs.storedCount > 0 } }

    /// Adds a stored job; its row is written with the next commit, unless it was restored from there.
    package mutating func insert(stored job: Job, _ state: RuleState, isRestored: Bool = false) {
        state.jobs.insert(job, isRestored: isRestored)
        storing.insert(state.index)
    }

    /// Returns the unfinished job with the id.
    package func find(_ id: JobID) -> (state: RuleState, number: UInt64)? {
        for state in states {
            if let job = state.jobs.jobs.first(where: { $0.id == id }) { return (state, job.number) }
        }
        return nil
    }
}

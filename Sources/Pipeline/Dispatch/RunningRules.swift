import Reconciling
import Rules
import System

/// The running rules, in the order of the ruleset, which is that of the reconciler's views.
struct RunningRules: RandomAccessCollection {
    private(set) var ruleset: Ruleset
    private var states: [RuleState]
    private var indexes: [RuleID: Int]
    /// The rules that may have jobs in their frozen queues.
    private var frozenRules: Set<Int> = []

    init(_ ruleset: Ruleset, _ states: [RuleState]) {
        self.ruleset = ruleset
        self.states = states
        indexes = Self.indexes(of: states)
    }

    private static func indexes(of states: [RuleState]) -> [RuleID: Int] {
        Dictionary(uniqueKeysWithValues: states.enumerated().map { ($1.id, $0) })
    }

    var startIndex: Int { 0 }
    var endIndex: Int { states.count }
    subscript(index: Int) -> RuleState { states[index] }

    /// Returns the index of the rule with the id; nil if it does not run.
    func index(of id: RuleID) -> Int? { indexes[id] }

    /// Sets other rules; those that are running retain their jobs.
    ///
    /// - Returns: The new names of renamed rules by their former names.
    mutating func change(to ruleset: Ruleset, _ new: [RuleState], at time: Timestamp) -> [String: String] {
        var names: [String: String] = [:]
        let old = states
        states = new.map { new in
            guard let state = indexes[new.id].map({ old[$0] }) else { return new }
            if state.rule.name != new.rule.name { names[state.rule.name] = new.rule.name }
            state.change(to: new.rule, at: time)
            return state
        }
        indexes = Self.indexes(of: states)
        self.ruleset = ruleset
        frozenRules = Set(states.indices)
        return names
    }

    /// Returns the rules that may have jobs or due paths; the others cost nothing.
    func active(_ reconciler: borrowing Reconciler) -> Set<Int> { reconciler.active.union(frozenRules) }

    /// Removes the rules without jobs from those that ``active(_:)`` returns.
    mutating func forgetIdle() { frozenRules = frozenRules.filter { !states[$0].frozen.entries.isEmpty } }

    /// Appends a job whose event is not compared with the ledger.
    mutating func append(_ entry: FrozenQueue.Entry, _ index: Int) {
        states[index].frozen.append(entry)
        frozenRules.insert(index)
    }

    /// Whether a rule has the unfinished job with the number.
    func knows(_ number: UInt64, _ index: Int) -> Bool {
        states[index].jobs[number] != nil || states[index].frozen[number] != nil
    }

    /// Returns the unfinished job with the id.
    func find(_ id: JobID) -> (index: Int, number: UInt64, isFrozen: Bool)? {
        for (index, state) in states.enumerated() {
            if let number = state.jobs.first(where: { $0.value.id == id })?.key { return (index, number, false) }
            if let number = state.frozen.entries.first(where: { $0.value.job.id == id })?.key {
                return (index, number, true)
            }
        }
        return nil
    }
}

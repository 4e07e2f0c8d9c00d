import FileEvents
package import Reconciling

/// A run of given steps, and the events that the action must receive.
package struct ScriptedCase: Sendable, CustomStringConvertible {
    package var name: String
    /// The rules.
    ///
    /// The second one is named `other`, also in the expected events.
    package var rules: [SimulatedRule]
    private var hasBirth = true
    private var foldsCase = false
    package var steps: String
    /// The expected events in the notation of ``RunRecord``; the order of different paths is ignored.
    package var expected: String

    /// The expected events of the reconciler of `Sources/Pipeline`, if they differ.
    private var expectedOfLedger: String?

    package static let all = CoreCases.all + FeatureCases.all

    package var description: String { name }

    /// Whether the reconciler alone can run the case.
    package var isForLedger: Bool {
        !foldsCase && rules.allSatisfy(\.isForLedger) && !steps.contains("hold")
    }

    /// Whether the engine can run the case: here it has no undo and no jobs on other hosts.
    package var isForEngine: Bool { !steps.contains("undo") && !rules.contains(where: \.isRemote) }

    func onLedger(gives expected: String) -> Self {
        var changed = self
        changed.expectedOfLedger = expected
        return changed
    }

    init(_ name: String, _ steps: String, gives expected: String, _ change: (inout SimulatedRule) -> Void = { _ in }) {
        self.name = name
        self.steps = steps
        self.expected = expected
        var rule = SimulatedRule()
        change(&rule)
        rules = [rule]
    }

    /// Returns the case with a second rule.
    func beside(_ change: (inout SimulatedRule) -> Void = { _ in }) -> Self {
        var rule = SimulatedRule()
        rule.name = "other"
        change(&rule)
        var both = self
        both.rules.append(rule)
        return both
    }

    func withoutBirthTimes() -> Self {
        var changed = self
        changed.hasBirth = false
        return changed
    }

    func foldingCase() -> Self {
        var changed = self
        changed.foldsCase = true
        return changed
    }

    /// Runs the case.
    ///
    /// - Returns: The error; nil if there is none.
    package func run(trace: (@Sendable (String) -> Void)? = nil) -> String? {
        let run = SimulatedRun(rules, hasBirth: hasBirth, foldsCase: foldsCase)
        run.trace = trace
        let failure = run.run(Step.script(steps))
        return compare(run, failure, with: [expected, expectedOfLedger].compactMap(\.self))
    }

    /// Runs the case with the reconciler of `Sources/Pipeline`.
    ///
    /// - Returns: The error; nil if there is none.
    package func runLedger(
        omitting rule: CoreRule? = nil, trace: (@Sendable (String) -> Void)? = nil
    ) -> String? {
        let run = LedgerRun(rules, hasBirth: hasBirth, foldsCase: foldsCase, omitting: rule)
        run.trace = trace
        run.isStrict = rule != nil
        let failure = run.run(Step.script(steps))
        return compare(run, failure, with: [expectedOfLedger ?? expected])
    }

    /// Returns the error of a run whose history must be one of the given ones.
    private func compare(_ run: some CoreRun, _ failure: String?, with allowed: [String]) -> String? {
        let given = Self.byPath(run.history)
        let isAllowed = allowed.contains { given == Self.byPath($0.split(separator: ",").map(Self.trimmed)) }
        if isAllowed { return failure }
        let suffix = failure.map { "; \($0)" } ?? ""
        return "given: \(run.history.joined(separator: ", ")); expected: \(allowed[0])\(suffix)"
    }

    private static func trimmed(_ text: Substring) -> String { String(text.drop { $0 == " " }) }

    private static func byPath(_ history: [String]) -> [String: [String]] {
        Dictionary(grouping: history) { line in
            let path = line.split(separator: " ").last ?? ""
            return String(path.split(separator: ">").last ?? path)
        }
    }
}

extension SimulatedRule {
    /// Makes the action take the file away, then record it.
    mutating func takes() {
        steps = [.take, .note]
        events = [.created, .modified]
    }

    /// Makes the action change its input.
    mutating func edits() { steps = [.edit] }
}

import FileEvents

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

    package static let all = CoreCases.all + FeatureCases.all

    package var description: String { name }

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
        let given = Self.byPath(run.history)
        if given == Self.byPath(expected.split(separator: ",").map(Self.trimmed)) { return failure }
        let suffix = failure.map { "; \($0)" } ?? ""
        return "given: \(run.history.joined(separator: ", ")); expected: \(expected)\(suffix)"
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

package import Rules

extension Rule {
    /// The names of its actions, joined by `+`.
    package var actionNames: String { actions.names }

    /// Returns the names of the list that an attempt at the job runs, joined by `+`.
    package func actionNames(of job: Job) -> String { actions(of: job).names }

    /// Whether an attempt may take long or run a program, and therefore needs a slot.
    package var takesSlot: Bool {
        ready?.command != nil || !(actions + onFailure).allSatisfy { $0.traits.contains(.isBrief) }
    }
}

extension [Action] {
    fileprivate var names: String { map(\.name).joined(separator: "+") }
}

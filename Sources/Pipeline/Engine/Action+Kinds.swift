package import Rules

extension Rule {
    /// The names of its actions, joined by `+`.
    package var actionNames: String { actions.names }

    /// Returns the names of the list that an attempt at the job runs, joined by `+`.
    package func actionNames(of job: Job) -> String { actions(of: job).names }

    /// Whether an attempt may take long or run a program, and therefore needs a slot.
    package var takesSlot: Bool { ready?.command != nil || !(actions + onFailure).allSatisfy(\.isBrief) }
}

extension [Action] {
    fileprivate var names: String { map(\.name).joined(separator: "+") }
}

extension Action {
    /// Whether it is a built-in action that removes the file from its path on success.
    package var removesInput: Bool { !isProgram && Self.removingHandlers.contains(name) }

    private static let removingHandlers: Set = ["delete", "move", "rename", "trash"]

    /// Whether it takes very little time for a small file, and handles several files as if one after the other.
    fileprivate var isBrief: Bool { !isProgram && Self.briefHandlers.contains(name) }

    private static let briefHandlers: Set = [
        "log", "copy", "index", "link", "move", "rename", "set-permissions", "tag", "touch", "trash",
    ]

    /// Whether an external program does the work.
    package var isProgram: Bool {
        switch work {
        case .use(let reference, _): reference.location != nil
        case .exec, .shell: true
        }
    }
}

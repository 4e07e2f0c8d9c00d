package import Rules

extension Rule {
    /// The names of its actions, joined by `+`.
    package var actionNames: String { actions.names }

    /// The names of the list that an attempt at the job runs, joined by `+`.
    package func actionNames(of job: Job) -> String { actions(of: job).names }

    /// Whether an attempt may take long, or run a program, and so needs a slot.
    package var takesSlot: Bool { ready?.command != nil || !(actions + onFailure).allSatisfy(\.isBrief) }
}

extension [Action] {
    fileprivate var names: String { map(\.name).joined(separator: "+") }
}

extension Action {
    /// Whether it is a built-in action after whose success the file is gone.
    package var removesInput: Bool { !isProgram && Self.removingHandlers.contains(name) }

    private static let removingHandlers: Set = ["delete", "move", "rename", "trash"]

    /// Whether it is done in a moment for a small file, and for several files like for one after the other.
    fileprivate var isBrief: Bool { !isProgram && Self.briefHandlers.contains(name) }

    private static let briefHandlers: Set = [
        "log", "copy", "index", "link", "move", "rename", "set-permissions", "tag", "touch", "trash",
    ]

    /// Whether a program outside Alight does the work.
    package var isProgram: Bool {
        switch work {
        case .use(let reference, _): reference.location != nil
        case .exec, .shell: true
        }
    }
}

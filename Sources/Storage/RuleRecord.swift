import FileEvents
package import System

/// What the journal has to know of a rule.
package struct RuleRecord: Sendable, Hashable {
    package var name: String
    /// Names that the rule had before.
    package var formerly: [String]
    /// Which paths the rule takes, as text that is equal for two rules only if they take the same.
    package var selection: String

    package init(name: String, formerly: [String] = [], selection: String) {
        self.name = name
        self.formerly = formerly
        self.selection = selection
    }
}

/// What is known of a rule when it begins.
package enum RuleStart: Sendable, Hashable {
    /// It runs for the first time: nothing is known.
    case fresh
    /// What is known is all that there was when it ran last.
    case resumed
    /// It began for the first time then, and was ended before all that was there had been noted.
    case unfinished(since: Timestamp)
    /// It matches other paths than in its last run, which ended then: nothing is stored of those that are new to it.
    case reselected(since: Timestamp, from: String)
}

/// A place through which files are seen, by which they are known again when its device has another number.
package struct MountRecord: Sendable, Hashable {
    package var point: PathBytes
    /// The identity of the folder that is mounted there.
    package var identity: FileIdentity

    package init(point: PathBytes, identity: FileIdentity) {
        self.point = point
        self.identity = identity
    }
}

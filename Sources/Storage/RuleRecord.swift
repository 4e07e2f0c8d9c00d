package import System

/// The properties of a rule that the journal stores.
package struct RuleRecord: Sendable, Hashable {
    package var name: String
    /// The former names of the rule.
    package var formerly: [String]
    /// The paths that the rule matches, as a string that is equal for two rules only if they match the same paths.
    package var selection: String

    package init(name: String, formerly: [String] = [], selection: String) {
        (self.name, self.formerly, self.selection) = (name, formerly, selection)
    }
}

/// The stored state of a rule when it starts.
package enum RuleStart: Sendable, Hashable {
    /// The rule runs for the first time; nothing is stored.
    case fresh
    /// The stored state is complete as of the last run.
    case resumed
    /// The rule started for the first time then, and stopped before all existing files were recorded.
    case unfinished(since: Timestamp)
    /// The rule matches other paths than in its last run, which ended then: nothing is stored for those that are new
    /// to it.
    case reselected(since: Timestamp, from: String)
}

/// A mount point of watched files, which identifies their device after its number has changed.
package struct MountRecord: Sendable, Hashable {
    package var point: PathBytes
    /// The identity of the mounted directory.
    package var identity: FileIdentity

    package init(point: PathBytes, identity: FileIdentity) { (self.point, self.identity) = (point, identity) }
}

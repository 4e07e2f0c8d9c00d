/// The reason why a pending job does not start yet although nothing failed; waiting does not count as an attempt.
package struct Waiting: Sendable, Hashable {
    package enum Cause: String, Sendable, Hashable, CaseIterable {
        /// The time is outside the rule's hours.
        case window
        /// The file does not have the age that `where` requires.
        case condition = "where"
        /// The file, or a condition on its content, cannot be read.
        case unreadable
        /// The file is too young, or too small.
        case age = "min-age"
        case size = "min-size"
        /// The marker file of `done_file` does not exist.
        case doneFile = "done-file"
        /// A command reported that the file is not ready.
        case command = "not-ready"
        /// Files of the group are missing, or have not settled.
        case group
        /// A rule with a higher priority is due for the file.
        case precedence = "priority"
        /// It ran for the file a short time ago.
        case cooldown

        /// Whether it ends after a short time by itself, so that a run that exits when idle waits for it.
        package var passesSoon: Bool { self == .age || self == .precedence || self == .cooldown }
    }

    package var cause: Cause
    /// A message of one line.
    package var message: String

    package init(_ cause: Cause, _ message: String) { (self.cause, self.message) = (cause, message) }
}

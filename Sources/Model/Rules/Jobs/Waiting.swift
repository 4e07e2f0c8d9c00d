/// Why a pending job is not begun yet, though nothing has failed: it costs no attempt.
package struct Waiting: Sendable, Hashable {
    package enum Cause: String, Sendable, Hashable, CaseIterable {
        /// Outside of the rule's hours.
        case window
        /// The file is not of the age that `where` asks for.
        case condition = "where"
        /// The file is too young, or too small.
        case age = "min-age"
        case size = "min-size"
        /// The file beside it that says so is not there.
        case doneFile = "done-file"
        /// A command has said so.
        case command = "not-ready"
        /// Files that belong to it are not there, or have not settled.
        case group
        /// A rule of higher priority is due for the file.
        case precedence = "priority"

        /// Whether it ends by the mere passing of a short time, so that a run that ends by itself waits for it.
        package var passesSoon: Bool { self == .age || self == .precedence }
    }

    package var cause: Cause
    /// One line for people.
    package var message: String

    package init(_ cause: Cause, _ message: String) {
        self.cause = cause
        self.message = message
    }
}

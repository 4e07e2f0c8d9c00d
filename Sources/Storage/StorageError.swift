/// A reason why the journal can't be read or written.
///
/// `description` is the message and `help` the remedy.
package struct StorageError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Whether a later attempt may succeed, as with a full disk; otherwise nothing in the journal is reliable any
    /// more.
    package var mayPass: Bool
    package var description: String
    package var help: String

    init(_ description: String, help: String, mayPass: Bool = false) {
        (self.description, self.help, self.mayPass) = (description, help, mayPass)
    }
}

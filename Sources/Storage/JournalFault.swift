/// Why the journal can't be read or written.
///
/// `description` is the sentence for people, `help` the way out.
package struct JournalFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// Whether trying again may help, as with a full disk; else nothing of the journal can be relied on any more.
    package var mayPass: Bool
    package var description: String
    package var help: String

    package init(mayPass: Bool, description: String, help: String) {
        self.mayPass = mayPass
        self.description = description
        self.help = help
    }
}

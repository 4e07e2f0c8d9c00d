/// An error in a value that is written as a string, as the message and help of a diagnostic.
package struct TextProblem: Error, Sendable, Hashable {
    package var message: String
    package var help: String

    package init(_ message: String, help: String) { (self.message, self.help) = (message, help) }
}

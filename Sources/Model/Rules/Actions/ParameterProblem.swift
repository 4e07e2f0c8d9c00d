/// An error in one value of a rule's `with:`, with its location.
package struct ParameterProblem: Error, Sendable, Hashable {
    package enum Step: Sendable, Hashable {
        case key(String)
        case index(Int)
    }

    /// The path from `with:` to the value; empty for `with:` itself.
    package var path: [Step]
    /// Whether the error is in the key, not its value: the caret is placed under the key.
    package var isAboutKey = false
    package var message: String
    package var help: String?
}

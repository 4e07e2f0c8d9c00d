/// The reason why a value, a file or a handler cannot be used, and its remedy.
package struct Problem: Error, Sendable, Hashable {
    package var message: String
    package var help: String?
    /// The key of the invalid value in the description of the handler, such as `parameters.properties.size`.
    package var key: String?
    /// The position in the file that describes the handler, and the message without it.
    package var origin: Origin?

    package struct Origin: Sendable, Hashable {
        package var position: SourcePosition
        package var message: String
    }

    package init(_ message: String, help: String? = nil, key: String? = nil) {
        (self.message, self.help, self.key) = (message, help, key)
    }

    /// Returns the problem at a position in the file that describes the handler.
    package func at(_ position: SourcePosition) -> Problem {
        var problem = self
        problem.origin = Origin(position: position, message: message)
        problem.message = "\(position): \(message)"
        return problem
    }

    /// Returns the problem with its subject in front of the message.
    package func of(_ subject: String) -> Problem {
        var problem = self
        problem.message = "\(subject): \(message)"
        if let origin {
            problem.origin = Origin(position: origin.position, message: "\(subject): \(origin.message)")
        }
        return problem
    }
}

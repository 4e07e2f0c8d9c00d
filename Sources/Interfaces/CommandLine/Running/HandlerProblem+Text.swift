import Rules

extension HandlerProblem {
    /// Returns the error as text, with a prefix before the message.
    func line(_ title: String = "") -> String {
        "error: \(title)\(Display.text(message))" + (help.map { "\n    help: \(Display.text($0))" } ?? "")
    }

    /// Prints the error on standard error.
    func say(_ title: String = "") { Output.error.write(line(title)) }
}

extension Exit {
    /// Prints an error with its help, and exits the program with a status.
    init(_ status: ExitStatus, error message: String, help: String?) {
        HandlerProblem(message: message, help: help).say()
        self.init(status)
    }
}

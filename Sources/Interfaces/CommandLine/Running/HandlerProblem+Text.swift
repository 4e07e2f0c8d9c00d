import Rules

extension HandlerProblem {
    /// The error as people read it, with the words before it.
    func line(_ title: String = "") -> String {
        "error: \(title)\(Display.text(message))" + (help.map { "\n    help: \(Display.text($0))" } ?? "")
    }

    /// Says it on standard error.
    func say(_ title: String = "") { Output.error.write(line(title)) }
}

extension Exit {
    /// Prints an error with its help, and ends the program with a status.
    init(_ status: ExitStatus, error message: String, help: String?) {
        HandlerProblem(message: message, help: help).say()
        self.init(status)
    }
}

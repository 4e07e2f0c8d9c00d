import ControlAPI
import FileObserving
import Rules
import Storage

extension HandlerProblem {
    /// The message and the help of an error that ends a command; nil for any other error.
    init?(_ error: any Error) {
        switch error {
        case let problem as HandlerProblem: self = problem
        case let problem as ControlClient.Problem: self.init(message: problem.message, help: problem.help)
        case let problem as ControlProblem: self.init(message: problem.message, help: problem.help)
        case let error as StorageError: self.init(message: error.description, help: error.help)
        case let error as JournalError: self.init(message: error.description, help: error.help)
        case let error as ObservationError: self.init(message: error.description, help: error.help)
        default: return nil
        }
    }

    /// Returns the error as text, with a prefix before the message.
    func line(_ title: String = "") -> String {
        "error: \(title)\(Display.text(message))" + (help.map { "\n    help: \(Display.text($0))" } ?? "")
    }

    /// Prints the error on standard error.
    func say(_ title: String = "") { Output.error.write(line(title)) }
}

/// Exits the program with a status; all messages have already been printed.
struct Exit: Error {
    var status: ExitStatus
    init(_ status: ExitStatus) { self.status = status }

    /// Prints an error with its help, and exits the program with a status.
    init(_ status: ExitStatus, error message: String, help: String?) {
        HandlerProblem(message: message, help: help).say()
        self.init(status)
    }

    /// Prints an error that a command throws, unless it is an exit itself; nil for any other error.
    init?(_ error: any Error) {
        switch error {
        case let exit as Exit: self = exit
        case let problem as JobName.Problem:
            problem.say()
            self.init(.runtimeError)
        default:
            guard let problem = HandlerProblem(error) else { return nil }
            problem.say()
            self.init(.runtimeError)
        }
    }
}

extension Reporter {
    /// Reports an error that has a message and a help.
    func say(_ error: any Error) {
        guard let problem = HandlerProblem(error) else { return }
        say(.error, Display.text(problem.message), help: problem.help)
    }

    /// Reports an error, and returns the exit of the program.
    func failure(_ error: any Error) -> Exit {
        say(error)
        return Exit(.runtimeError)
    }
}

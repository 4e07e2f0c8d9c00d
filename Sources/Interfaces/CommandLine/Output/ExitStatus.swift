import ArgumentParser
import Configuration
import ControlAPI
import FileObserving
import Globbing
import JSON
import Monitoring
import Programs
import Records
import Rules
import Storage
import Watching

/// The exit status of the program.
///
/// All statuses are defined here, and printed in the help of every command.
enum ExitStatus: Int32 {
    case done = 0
    case runtimeError = 1
    case usage = 2
    case rulesInvalid = 3
    /// With `--once`, no rule matched a file; for `explain` and `apply`, no path; for `undo`, no change to undo.
    case nothingMatched = 4
    /// With `--once`, and for `apply` and `undo`: some jobs failed.
    case someFailed = 5
    /// For `status`: the running instance cannot do all of its work.
    case degraded = 6

    private var meaning: String {
        switch self {
        case .done: "success"
        case .runtimeError: "runtime error"
        case .usage: "usage error"
        case .rulesInvalid: "invalid rules or configuration"
        case .nothingMatched: "nothing matched (--once, explain, apply, undo)"
        case .someFailed: "some jobs failed (--once, apply, undo)"
        case .degraded: "degraded (status)"
        }
    }

    /// The table of all statuses, for help texts.
    static let table = table(of: [.done, .runtimeError, .usage, .rulesInvalid, .nothingMatched, .someFailed, .degraded])

    /// Returns the table for a command that exits with only these statuses.
    static func table(of statuses: [ExitStatus]) -> String {
        "EXIT STATUS" + statuses.map { "\n  \($0.rawValue)  \($0.meaning)" }.joined()
    }
}

extension ArgumentHelp {
    /// Returns the help of an option or argument with a name for its value.
    static func value(_ name: String, _ abstract: String, discussion: String? = nil) -> ArgumentHelp {
        ArgumentHelp(abstract, discussion: discussion, valueName: name)
    }
}

extension CommandConfiguration {
    /// Creates the configuration of a command, whose help ends with its exit statuses.
    init(
        _ name: String, _ abstract: String, exits: [ExitStatus] = [.done, .runtimeError, .usage],
        discussion: String? = nil, subcommands: [any ParsableCommand.Type] = [],
        defaultSubcommand: (any ParsableCommand.Type)? = nil
    ) {
        self.init(
            commandName: name, abstract: abstract,
            discussion: (discussion.map { "\($0)\n\n" } ?? "") + ExitStatus.table(of: exits),
            subcommands: subcommands, defaultSubcommand: defaultSubcommand)
    }
}

extension Problem {
    /// The message and the help of an error that ends a command; nil for any other error.
    init?(_ error: any Error) {
        switch error {
        case let problem as Problem: self = problem
        case let problem as GlobError: self.init(problem.message, help: problem.help)
        case let problem as APIError: self.init(problem.message, help: problem.help)
        case let problem as ControlProblem: self.init(problem.message, help: problem.help)
        case let problem as ScratchFailure: self.init(problem.message, help: problem.help)
        case let error as StorageError: self.init(error.description, help: error.help)
        case let error as JournalError: self.init(error.description, help: error.help)
        case let error as ObservationError: self.init(error.description, help: error.help)
        case let error as StartError: self.init(error.description, help: error.help)
        case let error as WatchError: self.init(error.description, help: error.help)
        default: return nil
        }
    }

    /// The message and the help of an error, or its description.
    init(describing error: any Error) { self = Problem(error) ?? Problem(String(describing: error)) }

    /// Returns the error as text, with a prefix before the message.
    func line(_ title: String = "") -> String {
        "error: \(title)\(Display.text(message))" + (help.map { "\n    help: \(Display.text($0))" } ?? "")
    }

    /// Prints the error on standard error.
    func emit(_ title: String = "") { Output.error.write(line(title)) }
}

/// Returns the parsed value of an option.
///
/// - Throws: `ValidationError` with the name of the option, if it is invalid.
func parsed<Value>(_ option: String, _ parse: () throws -> Value) throws -> Value {
    do {
        return try parse()
    } catch {
        guard let problem = Problem(error) else { throw error }
        throw ValidationError("\(option): \(Display.text(problem.message)); \(problem.help ?? "")")
    }
}

/// Exits the program with a status; all messages have already been printed.
struct Exit: Error {
    var status: ExitStatus
    init(_ status: ExitStatus) { self.status = status }

    /// Prints an error with its help, and exits the program with a status.
    init(_ status: ExitStatus, error message: String, help: String?) {
        Problem(message, help: help).emit()
        self.init(status)
    }

    /// Prints an error that a command throws, unless it is an exit itself; nil for any other error.
    init?(_ error: any Error) {
        if let exit = error as? Exit {
            self = exit
        } else if let problem = Problem(error) {
            problem.emit()
            self.init(.runtimeError)
        } else {
            return nil
        }
    }
}

extension Reporter {
    /// Reports an error.
    func emit(_ error: any Error) {
        let problem = Problem(describing: error)
        emit(.error, Display.text(problem.message), help: problem.help)
    }
}

/// The format of diagnostics about rules files.
enum DiagnosticFormat: String, ExpressibleByArgument, CaseIterable {
    case text, json
}

extension Diagnostic {
    /// The diagnostic as a JSON object.
    ///
    /// A diagnostic about a whole file has no line.
    var object: [String: JSONValue] {
        let hasLine = location.line > 0
        return .init([
            "file": location.file, "severity": severity.rawValue, "message": message,
            "line": hasLine ? location.line : nil,
            "column": hasLine ? location.column : nil, "length": hasLine ? length : nil, "help": help,
        ])
    }

    /// Prints the diagnostic: as text on standard error, colored on a terminal, or as one JSON object per line on
    /// standard output.
    func log(as format: DiagnosticFormat) {
        switch format {
        case .text: Output.error.write(DiagnosticText.text(of: self, isColored: Output.error.hasColor))
        case .json: Output.standard.write(object.line)
        }
    }
}

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

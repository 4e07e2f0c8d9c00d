/// What the program's exit code says.
///
/// Decided here and nowhere else; printed in every help.
enum ExitStatus: Int32 {
    case done = 0
    case runtimeError = 1
    case usage = 2
    case rulesInvalid = 3
    /// With `--once`: no file was taken by any rule; of `explain` and `apply`: no path.
    case nothingMatched = 4
    /// With `--once` and `apply`: some jobs failed.
    case someFailed = 5
    /// Of `status`: the running Alight can't do all of its work as it should.
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

    /// The table for help texts.
    static let table = table(of: [.done, .runtimeError, .usage, .rulesInvalid, .nothingMatched, .someFailed, .degraded])

    /// The table for a command that ends with these alone.
    static func table(of statuses: [ExitStatus]) -> String {
        "EXIT STATUS" + statuses.map { "\n  \($0.rawValue)  \($0.meaning)" }.joined()
    }
}

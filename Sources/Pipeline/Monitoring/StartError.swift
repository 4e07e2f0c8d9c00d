import Glibc
package import Rules
package import System
package import Watching

/// A reason why the engine does not start.
///
/// `description` is the message and `help` the remedy.
package enum StartError: Error, Sendable, Hashable, CustomStringConvertible {
    case watching(WatchError)
    /// The root of a rule that must not wait for it does not exist.
    case rootMissing(PathBytes, rule: String, SourcePosition)
    /// A root can't be created.
    case rootRefused(PathBytes, rule: String, SourcePosition, errno: Int32)

    package var description: String {
        switch self {
        case .watching(let error): error.description
        case .rootMissing(let root, let rule, let location):
            "\(location.file):\(location.line): rule '\(rule)' needs the directory '\(root)', which does not exist"
        case .rootRefused(let root, let rule, let location, let errno):
            "\(location.file):\(location.line): rule '\(rule)' cannot create its directory '\(root)': "
                + SystemError(errno: errno).description
        }
    }

    package var help: String {
        switch self {
        case .watching(let error): error.help
        case .rootMissing: "create the directory, or set 'missing: create' or 'missing: wait'"
        case .rootRefused(_, _, _, let errno):
            errno == ENOTDIR || errno == EEXIST
                ? "something other than a directory is in the way; remove it, or correct 'path:'"
                : "create the directory, or let Alight's user create it"
        }
    }
}

import Glibc
public import System
import Watching

/// An error that prevents an observation from starting or continuing.
///
/// `description` is the message for users, `help` the remedy.
public enum ObservationError: Error, Sendable, Hashable, CustomStringConvertible {
    /// There are no roots or no patterns.
    case noRoots
    /// A pattern is invalid; `offset` is the byte offset in it, `help` the remedy.
    case invalidGlob(PathBytes, offset: Int, reason: String, help: String)
    /// The root is not a directory.
    case notDirectory(PathBytes)
    /// The root does not exist, and the options require it.
    case missingRoot(PathBytes)
    /// The system refuses to watch, list or create it.
    case refused(PathBytes, errno: Int32)
    /// No descriptor is available.
    case noDescriptor(errno: Int32)
    /// No thread could be created.
    case noThread

    public var description: String {
        switch self {
        case .noRoots: "there is nothing to observe"
        case .invalidGlob(_, _, let reason, _): reason
        case .notDirectory(let path): WatchError.notDirectory(path).description
        case .missingRoot(let path): "cannot watch '\(path)': it does not exist"
        case .refused(let path, let errno): WatchError.refused(path, errno: errno).description
        case .noDescriptor(let errno): "cannot open a descriptor: \(SystemError(errno: errno))"
        case .noThread: "cannot start a thread"
        }
    }

    public var help: String {
        switch self {
        case .noRoots: "name a directory and a pattern"
        case .invalidGlob(_, _, _, let help): help
        case .notDirectory: "name the directory, and the file in the globs"
        case .missingRoot: "create the directory, or wait for it with missing: .wait"
        case .refused(_, EACCES): "let this program's user read and enter the directory"
        case .refused(let path, let errno): WatchError.refused(path, errno: errno).help
        case .noDescriptor: "raise the limit of open files (ulimit -n)"
        case .noThread: "raise the limit of processes (ulimit -u)"
        }
    }
}

extension ObservationError {
    init(_ error: WatchError) {
        switch error {
        case .notDirectory(let path): self = .notDirectory(path)
        // These are not paths, but the names of the resources that were not available.
        case .refused("thread", _): self = .noThread
        case .refused("eventfd", let errno), .refused("inotify", let errno): self = .noDescriptor(errno: errno)
        case .refused(let path, let errno): self = .refused(path, errno: errno)
        }
    }
}

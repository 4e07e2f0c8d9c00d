import FileEvents
import FileWatching
import Glibc
public import System

/// Why an observation can't begin, or can't go on.
///
/// `description` is the sentence for people, `help` the way out.
public enum ObservationError: Error, Sendable, Hashable, CustomStringConvertible {
    /// There is nothing to observe.
    case noRoots
    /// A pattern has no meaning; `offset` counts its bytes, `help` says what to write.
    case invalidGlob(PathBytes, offset: Int, reason: String, help: String)
    /// The root is something else than a folder.
    case notFolder(PathBytes)
    /// The root does not exist, and the options say that it has to.
    case missingRoot(PathBytes)
    /// The system does not let it be watched, listed or made.
    case refused(PathBytes, errno: Int32)
    /// There is no room for another descriptor.
    case noDescriptor(errno: Int32)
    /// There is no room for another thread.
    case noThread

    public var description: String {
        switch self {
        case .noRoots: "there is nothing to observe"
        case .invalidGlob(_, _, let reason, _): reason
        case .notFolder(let path): "cannot watch '\(path)': it is not a directory"
        case .missingRoot(let path): "cannot watch '\(path)': it does not exist"
        case .refused(let path, let errno): "cannot watch '\(path)': \(Self.text(errno))"
        case .noDescriptor(let errno): "cannot open a descriptor: \(Self.text(errno))"
        case .noThread: "cannot start a thread"
        }
    }

    public var help: String {
        switch self {
        case .noRoots: "name a folder and a pattern"
        case .invalidGlob(_, _, _, let help): help
        case .notFolder: "name the folder, and the file in the globs"
        case .missingRoot: "make the folder, or wait for it with missing: .wait"
        case .refused(let path, let errno):
            switch errno {
            case EACCES: "let this program's user read and enter the folder"
            case ENAMETOOLONG: "shorten the path: it has \(path.bytes.count) bytes, and may have \(PATH_MAX - 1)"
            default: "look at the folder and its file system"
            }
        case .noDescriptor: "raise the limit of open files (ulimit -n)"
        case .noThread: "raise the limit of processes (ulimit -u)"
        }
    }

    private static func text(_ errno: Int32) -> String { String(cString: strerror(errno)) }
}

extension ObservationError {
    init(_ error: WatchError) {
        if case .notFolder(let path) = error {
            self = .notFolder(path)
        } else if case .refused(let path, let errno) = error {
            // Such a place is no path, but what there was no room for.
            switch path {
            case "thread": self = .noThread
            case "eventfd", "inotify": self = .noDescriptor(errno: errno)
            default: self = .refused(path, errno: errno)
            }
        } else {
            self = .noDescriptor(errno: EMFILE)
        }
    }
}

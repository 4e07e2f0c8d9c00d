import FileEvents
import Glibc
import Reconciling
public import System
import Watching

/// A notice about the watching itself.
///
/// No action is necessary: no events are lost in any of these cases, though they may be late.
public enum ObservationNotice: Sendable, Hashable {
    /// Every existing directory is watched or polled; with the number of directories.
    case ready(directories: Int)
    /// The initial listing takes long; with the number of directories listed so far.
    case progress(directories: Int)
    /// The kernel queue overflowed; all paths are compared again.
    case overflow
    /// A comparison of all paths has finished.
    case rescanned
    /// A root does not exist, or no longer; the observer waits for it.
    case rootMissing(PathBytes)
    /// A root that was missing exists now.
    case rootAppeared(PathBytes)
    /// A file system was unmounted; its files are inaccessible, not deleted.
    case unmounted(PathBytes)
    /// A file system was mounted over a watched directory.
    case mounted(PathBytes)
    /// A directory and everything below it are polled; with the file system type if that is the reason.
    case polling(PathBytes, fileSystem: String?, every: Duration)
    /// A limit of inotify is reached, and `polled` directories are polled instead; this program needs a limit of
    /// `needed`.
    case watchLimit(sysctl: String, limit: Int, needed: Int, polled: Int)
    /// A path can't be read; its known state is unchanged.
    case unreadable(PathBytes, errno: Int32)
    /// A file has been open for writing for this long; the observer still waits for it.
    case stillWritten(PathBytes, for: Duration)
    /// Changes in a directory go unnoticed.
    case failure(ObservationError)
}

extension ObservationNotice {
    /// Creates the notice for a report of the watcher; nil when there is none.
    init?(_ report: WatchReport) {
        switch report {
        case .ready(let directories): self = .ready(directories: directories)
        case .progress(let directories): self = .progress(directories: directories)
        case .overflow: self = .overflow
        case .rescanned: self = .rescanned
        case .rootMissing(let root, _): self = .rootMissing(root)
        case .rootAppeared(let root): self = .rootAppeared(root)
        case .unmounted(let directory, _): self = .unmounted(directory)
        case .mounted(let directory): self = .mounted(directory)
        case .polling(let directory, let reason, let interval):
            self = .polling(directory, fileSystem: reason.fileSystem, every: interval)
        case .limited(let limit, let needed, let polled):
            self = .watchLimit(sysctl: limit.name, limit: limit.value, needed: needed, polled: polled)
        case .failure(let error): self = .failure(ObservationError(error))
        case .overflowAgain, .listing, .listed, .changed, .writersUnreported, .companions: return nil
        }
    }

    init(_ warning: Reconciler.Warning) {
        switch warning {
        case .stillWritten(let path, let duration): self = .stillWritten(path, for: duration)
        case .unreadable(let path, let errno): self = .unreadable(path, errno: errno)
        }
    }
}

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

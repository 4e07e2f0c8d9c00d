import FileEvents
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
        case .limited(let shortage):
            self = .watchLimit(
                sysctl: shortage.limit.name, limit: shortage.limit.value, needed: shortage.needed,
                polled: shortage.polled)
        case .failure(let error): self = .failure(ObservationError(error))
        case .overflowAgain, .listing, .listed, .changed, .writersUnreported: return nil
        }
    }

    init(_ warning: Reconciler.Warning) {
        switch warning {
        case .stillWritten(let path, let duration): self = .stillWritten(path, for: duration)
        case .unreadable(let path, let errno): self = .unreadable(path, errno: errno)
        }
    }
}

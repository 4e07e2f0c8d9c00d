import FileEvents
import FileWatching
import Reconciling
public import System

/// What is worth knowing about the watching itself.
///
/// None of it has to be acted on: nothing is lost in any of these cases, though it may be told late.
public enum ObservationNotice: Sendable, Hashable {
    /// Every folder that exists is watched or polled; so many there are.
    case ready(folders: Int)
    /// The first listing takes long; so many folders are listed by now.
    case progress(folders: Int)
    /// The kernel's queue was full; everything is compared again.
    case overflow
    /// A comparison of everything is done.
    case rescanned
    /// A root does not exist (any more), and is waited for.
    case rootMissing(PathBytes)
    /// A root that was missing is there.
    case rootAppeared(PathBytes)
    /// A file system is gone; what was on it is out of sight, not deleted.
    case unmounted(PathBytes)
    /// A file system was mounted over a watched folder.
    case mounted(PathBytes)
    /// A folder and all below it are polled; the file system is named if it is the reason.
    case polling(PathBytes, fileSystem: String?, every: Duration)
    /// A limit of inotify is reached, and so many folders are polled instead; `needed` would do for this program.
    case watchLimit(sysctl: String, limit: Int, needed: Int, polled: Int)
    /// A path can't be looked at; what is known of it stays.
    case unreadable(PathBytes, errno: Int32)
    /// A file has been open for writing for so long; it is still waited for.
    case stillWritten(PathBytes, for: Duration)
    /// What happens in a folder is not seen.
    case failure(ObservationError)
}

extension ObservationNotice {
    /// What a report of the watcher is to people; nil when it is nothing to them.
    init?(_ report: WatchReport) {
        switch report {
        case .ready(let folders): self = .ready(folders: folders)
        case .progress(let folders): self = .progress(folders: folders)
        case .overflow: self = .overflow
        case .rescanned: self = .rescanned
        case .rootMissing(let root, _): self = .rootMissing(root)
        case .rootAppeared(let root): self = .rootAppeared(root)
        case .unmounted(let folder, _): self = .unmounted(folder)
        case .mounted(let folder): self = .mounted(folder)
        case .polling(let folder, let reason, let interval):
            switch reason {
            case .asked: self = .polling(folder, fileSystem: nil, every: interval)
            case .fileSystem(let name): self = .polling(folder, fileSystem: name, every: interval)
            }
        case .limited(let shortage):
            self = .watchLimit(
                sysctl: shortage.limit.name, limit: shortage.limit.value, needed: shortage.needed,
                polled: shortage.polled)
        case .failure(let error): self = .failure(ObservationError(error))
        case .overflowAgain, .listing, .listed, .changed, .authorsUntold: return nil
        }
    }

    init(_ warning: Reconciler.Warning) {
        switch warning {
        case .stillWritten(let path, let duration): self = .stillWritten(path, for: duration)
        case .unreadable(let path, let errno): self = .unreadable(path, errno: errno)
        }
    }
}

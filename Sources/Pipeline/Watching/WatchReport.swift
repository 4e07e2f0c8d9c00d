package import FileEvents
package import System

/// A report from a watcher, in addition to hints.
package enum WatchReport: Sendable, Hashable {
    /// Every existing directory is watched or polled, and has been listed; with the number of directories.
    case ready(directories: Int)
    /// The initial listing takes long; with the number of directories listed so far.
    case progress(directories: Int)
    /// The kernel queue overflowed and events are missing; all roots are being listed again.
    case overflow
    /// Another overflow, before the listing after the first one has started.
    case overflowAgain
    /// The first name was seen that may be that of a companion of an unfinished file, see ``PartialFile``.
    case companions
    /// The scope with that number is in effect from here on; unfinished listings start again.
    case changed(number: Int)
    /// The listing of a root has started, for this reason.
    case listing(PathBytes, EventOrigin)
    /// The listing of a root has finished, or stopped because the root vanished; all its hints are in the queue.
    case listed(PathBytes, EventOrigin)
    /// The listing of all roots, after an overflow or on request, has finished.
    case rescanned
    /// A root does not exist, or no longer; the nearest existing directory above it is watched instead.
    case rootMissing(PathBytes, watching: PathBytes)
    /// A root that was missing exists now, and is watched.
    case rootAppeared(PathBytes)
    /// The file system of a watched directory, mounted at `point`, was unmounted; its files are no longer accessible.
    case unmounted(PathBytes, point: PathBytes)
    /// Another file system was mounted over a watched directory, or over one above it.
    case mounted(PathBytes)
    /// A directory and everything below it are polled.
    case polling(PathBytes, PollingReason, every: Duration)
    /// The limit of watches or instances is reached: directories without a watch are polled.
    ///
    /// Reported when the initial listing has finished, so that the need is known, and again, at growing intervals, when
    /// it has grown.
    /// `needed` is the value that this program needs, excluding the watches of the user's other processes; `polled` the
    /// number of directories that are polled because they have no watch.
    case limited(InotifyLimit, needed: Int, polled: Int)
    /// The kernel can't report which processes cause events on the file system of a directory, although a rule asks for
    /// it.
    case writersUnreported(PathBytes, errno: Int32)
    /// A directory can't be watched or listed: changes in it go unnoticed.
    case failure(WatchError)
}

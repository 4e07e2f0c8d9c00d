package import FileEvents
package import System

/// What a watcher tells besides hints.
package enum WatchReport: Sendable, Hashable {
    /// Every folder that exists is watched or polled, and listed; so many folders there are.
    case ready(folders: Int)
    /// The first listing takes long: so many folders are listed by now.
    case progress(folders: Int)
    /// The kernel's queue was full and events are missing; all roots are being listed again.
    case overflow
    /// The same again, before the listing that follows an overflow has begun.
    case overflowAgain
    /// The scope of that number is watched from here on; what was being listed is begun anew.
    case changed(number: Int)
    /// The listing of a root begins, for this reason.
    case listing(PathBytes, EventOrigin)
    /// The listing of a root is done, or was cut short since the root went; all hints of it are in the queue.
    case listed(PathBytes, EventOrigin)
    /// The listing of all roots after an overflow or on demand is done.
    case rescanned
    /// A root does not exist (any more); the nearest existing folder above it is watched instead.
    case rootMissing(PathBytes, watching: PathBytes)
    /// A root that was missing is there, and watched.
    case rootAppeared(PathBytes)
    /// The file system of a watched folder is gone, and its files are out of sight; `point` is where it was mounted.
    case unmounted(PathBytes, point: PathBytes)
    /// Another file system is mounted over a watched folder, or over one above it.
    case mounted(PathBytes)
    /// A folder and all below it are polled.
    case polling(PathBytes, PollingReason, every: Duration)
    /// The limit of watches or instances is reached: what has no watch is polled.
    ///
    /// Told when the first listing is done and so the need is known, and again, ever more rarely, when it has grown.
    case limited(WatchShortage)
    /// The kernel does not say who does what on the file system of a folder, though somebody asks.
    case authorsUntold(PathBytes, errno: Int32)
    /// A folder can't be watched or listed: what happens in it is not seen.
    case failure(WatchError)
}

/// Why a folder is polled.
package enum PollingReason: Sendable, Hashable {
    /// The rule says so.
    case asked
    /// The kernel does not tell of all that happens on this type of file system, such as `nfs`.
    case fileSystem(String)
}

/// A limit of inotify that is too low for what is to be watched.
package struct WatchShortage: Sendable, Hashable {
    package var limit: InotifyLimit
    /// The value that would do for this program, beside the watches that others of the user hold.
    package var needed: Int
    /// Folders that are polled for want of a watch.
    package var polled: Int

    package init(limit: InotifyLimit, needed: Int, polled: Int) {
        self.limit = limit
        self.needed = needed
        self.polled = polled
    }
}

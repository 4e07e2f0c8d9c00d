package import FileEvents
package import System

/// The status of a watcher: its roots, how they are watched, and the resources used.
package struct WatchStatus: Sendable, Hashable {
    /// The way changes below a root are detected.
    package enum Means: String, Sendable, Hashable {
        case inotify, polling
        /// The root does not exist, or can't be read.
        case missing
    }

    /// A root of the watched trees.
    package struct Root: Sendable, Hashable {
        package var path: PathBytes
        package var means: Means
        /// The reason why it is polled, other than a lack of watches; nil when it isn't polled.
        package var polling: PollingReason?
        /// Whether it can't be read, as opposed to not existing.
        package var isDenied = false
        /// The number of directories in it, including itself.
        package var directories = 0
        /// The number of polled directories.
        package var polled = 0
        /// The number of polled directories that have no watch because the limit is reached.
        package var short = 0
    }

    /// The roots, sorted by path.
    package var roots: [Root] = []
    /// The number of watches that this program uses.
    package var watches = 0
    /// The limit of watches, for all processes of the user together.
    package var limit = 0
    /// The limit that prevents an inotify instance; nil when there is an instance.
    package var instanceLimit: InotifyLimit?
    /// The number of directories that are polled because they have no watch.
    package var short = 0
    /// The number of directories that can't be watched or listed.
    package var failed = 0

    /// The status of a watcher that has not answered yet.
    package static let unknown = WatchStatus()
}

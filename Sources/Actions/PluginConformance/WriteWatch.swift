import System
import Watching

/// Records which files are written in some directories, including those that are gone again at the end.
///
/// Writes to a file without a name, as with O_TMPFILE, are not recorded.
///
/// Directories that are created meanwhile are not watched: they appear in the comparison of before and after.
final class WriteWatch {
    private let inotify: InotifyInstance?
    private var directories: [WatchDescriptor: PathBytes] = [:]

    init(_ watched: [PathBytes]) {
        var error: Int32 = 0
        inotify = InotifyInstance(error: &error)
        for directory in watched {
            if let watch = inotify?.add(directory, [.create, .movedTo, .modify]) { directories[watch] = directory }
        }
    }

    /// Returns the paths that were written to since the last call.
    func written() -> Set<PathBytes> {
        var paths: Set<PathBytes> = []
        var hasMore = true
        while hasMore {
            hasMore =
                inotify?.read { event in
                    if let directory = directories[event.watch], !event.name.isEmpty {
                        paths.insert(directory.appending(Array(event.name)))
                    }
                } ?? false
        }
        return paths
    }
}

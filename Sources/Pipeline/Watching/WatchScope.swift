import FileEvents
package import System

/// How a root is watched.
package enum Backend: String, Sendable, Hashable, CaseIterable {
    /// By inotify where that sees every change, else by polling: on network and FUSE file systems, and beyond the
    /// limit of watches.
    case auto
    /// By inotify, whatever the file system; beyond the limit of watches by polling.
    case inotify
    /// By looking again and again.
    case poll
}

/// A folder where watching begins.
package struct WatchRoot: Sendable, Hashable {
    /// The absolute path; the folder need not exist.
    package var path: PathBytes
    package var backend: Backend
    /// How long to rest between two looks, where it is polled.
    package var interval: Duration

    package init(path: PathBytes, backend: Backend = .auto, interval: Duration = .seconds(10)) {
        self.path = path
        self.backend = backend
        self.interval = interval
    }
}

/// What is worth a watch and what is worth a hint.
package struct WatchScope: Sendable {
    /// The folders where watching begins.
    ///
    /// Several may have the same path: then it is watched if any of them asks for
    /// that, polled if any asks for that, and at the shortest interval.
    package var roots: [WatchRoot]
    /// Whether opening, reading and closing without a write are told, too.
    package var isRaw: Bool
    /// Whether the folders that the first listing finds are worth a hint; those that appear later always are.
    package var hintsFoundFolders: Bool
    /// How long the kernel's queue is left alone after each look, where nobody waits for what it tells; nil for not longer
    /// than a storm asks for.
    package var rest: Duration?
    /// How many watches the program holds elsewhere, for which the limit has to do as well.
    package var watchesBeside = 0
    /// Listens to who does what in the watched folders; nil when nobody asks.
    package var recorder: AuthorRecorder?
    /// Whether something strictly below the folder could be wanted.
    package var reaches: @Sendable (PathBytes) -> Bool
    /// Whether the path itself is wanted.
    package var takes: @Sendable (PathBytes) -> Bool
    /// Whether a path directly in the folder could be wanted; else the kernel is asked for names alone, since folders
    /// come and go there.
    package var mayTake: @Sendable (_ folder: PathBytes) -> Bool

    package init(
        roots: [WatchRoot], isRaw: Bool = false, hintsFoundFolders: Bool = true,
        reaches: @escaping @Sendable (PathBytes) -> Bool,
        takes: @escaping @Sendable (PathBytes) -> Bool,
        mayTake: @escaping @Sendable (_ folder: PathBytes) -> Bool = { _ in true }
    ) {
        self.roots = roots
        self.isRaw = isRaw
        self.hintsFoundFolders = hintsFoundFolders
        self.reaches = reaches
        self.takes = takes
        self.mayTake = mayTake
    }
}

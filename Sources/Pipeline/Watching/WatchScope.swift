package import FileEvents
package import System

/// A directory whose tree is watched.
package struct WatchRoot: Sendable, Hashable {
    /// The absolute path; the directory need not exist.
    package var path: PathBytes
    package var backend: Backend
    /// The time between two polls, where it is polled.
    package var interval: Duration

    package init(path: PathBytes, backend: Backend = .auto, interval: Duration = .seconds(10)) {
        self.path = path
        self.backend = backend
        self.interval = interval
    }
}

/// The paths to watch and to hint.
package struct WatchScope: Sendable {
    /// The directories whose trees are watched.
    ///
    /// Several may have the same path: then it is watched if any of them asks for
    /// that, polled if any asks for that, and at the shortest interval.
    package var roots: [WatchRoot]
    /// Whether opening, reading, and closing without a write are reported, too.
    package var isRaw: Bool
    /// Whether directories found by the initial listing are hinted; those that appear later always are.
    package var hintsFoundDirectories: Bool
    /// Whether the initial listing reads the extended attributes of the files that it finds and inspects; nil if it does
    /// not inspect them, since the consumer knows them.
    package var readsExtended: Bool?
    /// The pause after each read of the kernel queue, for use where no consumer waits for events; nil for a pause only
    /// during an event storm.
    package var rest: Duration?
    /// The number of watches used elsewhere in the program, which count towards the same limit.
    package var watchesBeside = 0
    /// Records which processes cause events in the watched directories; nil when no rule needs that.
    package var recorder: WriterRecorder?
    /// Whether any path strictly below the directory could match.
    package var reaches: @Sendable (PathBytes) -> Bool
    /// Whether the path itself matches.
    package var takes: @Sendable (PathBytes) -> Bool
    /// Whether a path directly in the directory could match; otherwise the watch reports names only, since directories
    /// come and go there.
    package var canMatch: @Sendable (_ directory: PathBytes) -> Bool

    package init(
        roots: [WatchRoot], isRaw: Bool = false, hintsFoundDirectories: Bool = true,
        reaches: @escaping @Sendable (PathBytes) -> Bool,
        takes: @escaping @Sendable (PathBytes) -> Bool,
        canMatch: @escaping @Sendable (_ directory: PathBytes) -> Bool = { _ in true }
    ) {
        self.roots = roots
        self.isRaw = isRaw
        self.hintsFoundDirectories = hintsFoundDirectories
        self.reaches = reaches
        self.takes = takes
        self.canMatch = canMatch
    }
}

extension PollingReason {
    /// Returns the reason why a directory is polled although no rule asks for it: the type of its file system.
    ///
    /// - Parameter directory: A directory; symbolic links to it are followed.
    /// - Returns: Nil when the kernel reports every change there, or the directory can't be opened.
    package static func unreliableFileSystem(of directory: PathBytes) -> PollingReason? {
        FileSystemType.unreliable(at: directory).map { .fileSystem($0) }
    }
}

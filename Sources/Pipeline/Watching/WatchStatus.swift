import FileEvents
package import System

/// How it stands with the watching: what is watched, by what means, and how much that takes.
package struct WatchStatus: Sendable, Hashable {
    /// How changes below a root are learned.
    package enum Means: String, Sendable, Hashable {
        case inotify, polling
        /// It is not there, or can't be looked at.
        case missing
    }

    /// One of the folders where the watching begins.
    package struct Root: Sendable, Hashable {
        package var path: PathBytes
        package var means: Means
        /// Why it is polled by another means than a lack of watches; nil when it isn't.
        package var polling: PollingReason?
        /// Whether it can't be looked at, rather than not being there.
        package var isDenied: Bool
        /// The folders in it, itself among them.
        package var folders: Int
        /// How many of them are polled.
        package var polled: Int
        /// How many of those for want of a watch.
        package var short: Int

        package init(
            path: PathBytes, means: Means, polling: PollingReason? = nil, isDenied: Bool = false, folders: Int = 0,
            polled: Int = 0, short: Int = 0
        ) {
            self.path = path
            self.means = means
            self.polling = polling
            self.isDenied = isDenied
            self.folders = folders
            self.polled = polled
            self.short = short
        }
    }

    /// By path.
    package var roots: [Root]
    /// The watches that this program holds.
    package var watches: Int
    /// The limit of watches, for all of the user's programs together.
    package var limit: Int
    /// Why there is no inotify at all; nil when there is.
    package var instanceLimit: InotifyLimit?
    /// Folders that are polled for want of a watch.
    package var short: Int
    /// Folders that can't be watched or listed.
    package var failed: Int

    package init(
        roots: [Root] = [], watches: Int = 0, limit: Int = 0, instanceLimit: InotifyLimit? = nil, short: Int = 0,
        failed: Int = 0
    ) {
        self.roots = roots
        self.watches = watches
        self.limit = limit
        self.instanceLimit = instanceLimit
        self.short = short
        self.failed = failed
    }
}

extension Watcher {
    /// Asks how it stands, on the watcher's thread, and waits for the answer.
    ///
    /// It costs in proportion to the number of folders when that has changed since somebody asked last.
    ///
    /// - Parameter limit: How long to wait; the thread may be listing on a slow file system.
    /// - Returns: The answer; nil when none came in time.
    package func survey(within limit: Duration) -> WatchStatus? {
        guard let survey = try? Survey() else { return nil }
        ask(survey)
        return survey.wait(until: .now + limit)
    }
}

extension WatchLoop {
    func surveyed() -> WatchStatus {
        if tree.edition != counted.edition { counted = (tree.edition, [:]) }
        let present = roots.indices.filter { !retired.contains($0) }.map { index -> WatchStatus.Root in
            let root = roots[index]
            guard let folder = root.folder, root.presence == .present else {
                return WatchStatus.Root(path: root.path, means: .missing, isDenied: root.presence == .denied)
            }
            let counts = counted.counts[folder] ?? tree.counts(in: folder)
            counted.counts[folder] = counts
            let isPolled = tree.flags(of: folder).contains(.polled)
            var reason: PollingReason?
            if isPolled {
                let type = root.wantsPoll ? nil : FileSystemType.untold(at: root.path)
                reason = type.map { .fileSystem($0) } ?? .asked
            }
            return WatchStatus.Root(
                path: root.path, means: isPolled || inotify == nil ? .polling : .inotify, polling: reason,
                folders: counts.folders, polled: counts.polled, short: counts.short)
        }
        return WatchStatus(
            roots: present.sorted { $0.path < $1.path },
            watches: inotify == nil
                ? 0
                : tree.watchCount + ways.count { tree.folders(of: $0).isEmpty } + scope.watchesBeside,
            limit: InotifyLimit.watches.value, instanceLimit: instanceLimit, short: tree.shortCount,
            failed: tree.failedCount)
    }
}

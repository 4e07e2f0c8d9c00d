package import FileEvents
import Glibc
package import System

/// The resources that watching a scope would need, determined without watching.
package struct WatchSurvey: Sendable {
    /// The number of directories that would each have a watch.
    package private(set) var directories = 0
    /// Whether all directories were counted; false when the count stopped at a limit.
    package private(set) var isComplete = true
    /// The top directories of the polled trees, and the reasons.
    package private(set) var polled: [(directory: PathBytes, reason: PollingReason)] = []
    /// The limit of watches in effect.
    package let limit = InotifyLimit.watches
    /// The number of watches that the user's processes use now; nil when it can't be determined.
    package let used = WatchSurvey.usedWatches()

    /// Counts the directories below the roots, as a watcher would visit them.
    ///
    /// - Parameters:
    ///   - scope: The scope that would be watched.
    ///   - most: The number of directories at which the count stops.
    ///   - deadline: The time at which the count stops; a blocking file system may delay that.
    package init(_ scope: WatchScope, most: Int = 1_000_000, until deadline: ContinuousClock.Instant) {
        var seen: Set<PathBytes> = []
        let wanted = Dictionary(grouping: scope.roots, by: \.path).mapValues { $0.map(\.backend) }
        let outerFirst = wanted.sorted { $0.key.bytes.count < $1.key.bytes.count }
        for (path, backends) in outerFirst where !seen.contains(path) {
            if backends.contains(.poll) { polled.append((path, .asked)) }
            if !backends.contains(where: { $0 != .poll }) { continue }
            var pending: [(path: PathBytes, device: UInt64?)] = [(path, nil)]
            while let (directory, device) = pending.popLast() {
                if directories >= most || .now >= deadline {
                    isComplete = false
                    return
                }
                let isRoot = wanted.count > 1 && directory != path && wanted[directory] != nil
                if isRoot, !seen.insert(directory).inserted { continue }
                guard let reader = try? DirectoryReader(directory, below: path) else { continue }
                if reader.device != device, !backends.contains(.inotify), let name = reader.unreliableFileSystem {
                    polled.append((directory, .fileSystem(name)))
                    continue
                }
                directories += 1
                try? reader.forEach { entry in
                    guard reader.isDirectory(entry) else { return }
                    let path = directory.appending(entry.name)
                    if scope.reaches(path) { pending.append((path, reader.device)) }
                }
            }
        }
    }

    /// Returns the number of watches of all processes of this user, as `/proc` shows them.
    private static func usedWatches() -> Int? {
        var count: Int?
        for process in (try? KernelFileSystem().names(in: "/proc")) ?? [] where Int32("\(process)") != nil {
            let directory = PathBytes("/proc").appending(process.bytes)
            guard KernelFileSystem().stat(directory).snapshot?.uid == geteuid() else { continue }
            let descriptors = directory.appending("fdinfo")
            for name in (try? KernelFileSystem().names(in: descriptors)) ?? [] {
                let lines = ProcFile.text(of: "\(descriptors.appending(name.bytes))").split(separator: "\n")
                count = (count ?? 0) + lines.count { $0.hasPrefix("inotify wd:") }
            }
        }
        return count
    }
}

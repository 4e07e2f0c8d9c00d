package import FileEvents
import FileWatching

/// A file that somebody touches again and again, to see that what happens to files is seen.
///
/// No rule is told of it. Each time that a touch has come out of the watcher, and the
/// turn of the engine that took it has ended, the engine reports it.
package struct WatchedCanary: Sendable {
    /// A folder that holds nothing else, and is watched like a root.
    package let folder: PathBytes
    /// How often it is looked at, where the kernel does not tell.
    package let interval: Duration

    package init(folder: PathBytes, interval: Duration) {
        self.folder = folder
        self.interval = interval
    }

    package var file: PathBytes { folder.appending("canary") }

    /// Has it watched besides.
    func add(to scope: inout WatchScope) {
        let (folder, file, reaches, takes, mayTake) = (folder, file, scope.reaches, scope.takes, scope.mayTake)
        scope.roots.append(WatchRoot(path: folder, interval: interval))
        scope.reaches = { $0 == folder || reaches($0) }
        scope.takes = { $0 == file || takes($0) }
        scope.mayTake = { $0 == folder || mayTake($0) }
    }

    /// Takes out all that is about it, and says whether it was touched.
    func take(from batch: inout HintQueue.Batch) -> Bool {
        var isTouched = false
        batch.hints.removeAll { hint in
            guard hint.path.isInside(folder) else { return false }
            // What a listing finds was not touched.
            isTouched = isTouched || hint.path == file && !hint.signs.isDisjoint(with: Self.touches)
            return true
        }
        if !batch.reports.isEmpty { batch.reports = batch.reports.compactMap(withoutIt) }
        return isTouched
    }

    private static let touches: Hint.Signs = [.appeared, .written, .closed, .polled]

    /// The same without the folder; nil when nothing is left.
    private func withoutIt(_ report: WatchReport) -> WatchReport? {
        switch report {
        case .listing(folder, _), .listed(folder, _), .rootMissing(folder, _), .rootAppeared(folder),
            .polling(folder, _, _), .authorsUntold(folder, _):
            nil
        case .ready(let folders): .ready(folders: max(0, folders - 1))
        default: report
        }
    }
}

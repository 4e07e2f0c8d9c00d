import FileEvents
import Rules
import System
import Watching

/// The roots through which changes of a path are detected, and how they are watched.
struct Coverage {
    struct Root {
        var path: PathBytes
        /// The reason why the root is polled; nil for inotify.
        var polling: PollingReason?
        /// The polling interval.
        var interval: Duration
        var isThere: Bool
        /// The first directory on the way to the path below which no rule matches anything, so that it is not watched.
        var unreached: PathBytes?
    }

    /// The roots that contain the path.
    ///
    /// A root that is the path itself is not included.
    var roots: [Root]
    /// All roots, if none contains the path.
    var others: [PathBytes]

    /// Determines the coverage by the rules that are loaded and enabled.
    init(of path: PathBytes, _ ruleset: Ruleset) {
        let holding = ruleset.roots.filter { path.isInside($0) && path != $0 }
        roots = holding.map { Root($0, holding: path, ruleset) }
        others = holding.isEmpty ? ruleset.roots : []
    }

    var isWatched: Bool { roots.contains { $0.unreached == nil } }
}

extension Coverage.Root {
    fileprivate init(_ root: PathBytes, holding path: PathBytes, _ ruleset: Ruleset) {
        self.path = root
        let rules = ruleset.rules.filter { $0.roots.contains(root) }
        interval = rules.map(\.pollInterval).min() ?? .zero
        isThere = DiskProbe.resolve(root) != nil
        let folders = Explanation.folders(from: root, to: path)
        unreached = folders.first { !ruleset.reaches(below: $0) }
        polling = Explanation.polling(rules, folders) { PollingReason.untoldFileSystem(of: $0) }
    }
}

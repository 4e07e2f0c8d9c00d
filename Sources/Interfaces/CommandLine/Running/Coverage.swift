import FileEvents
import FileWatching
import Rules
import System

/// Through which roots changes at a path are noticed, and how.
struct Coverage {
    struct Root {
        var path: PathBytes
        /// Why it is polled; nil for inotify.
        var polling: PollingReason?
        /// How long to rest between two looks.
        var interval: Duration
        var isThere: Bool
        /// The first folder on the way to the path below which no rule takes anything, so that it is not looked into.
        var unreached: PathBytes?
    }

    /// The roots that hold the path, and are not the path itself.
    var roots: [Root]
    /// All roots, if none holds it.
    var others: [PathBytes]

    /// Works it out for the rules that are in force.
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

import FileEvents
package import Rules
package import System

/// Finds the files that say of others that these are done, though no rule takes them.
///
/// They are looked up by the folders above a path, so that rules for other places cost it nothing.
package struct MarkerIndex: Sendable {
    private var byRoot: [PathBytes: Set<Readiness>] = [:]

    package init(_ rules: [Rule]) {
        for rule in rules {
            guard let ready = rule.ready, ready.doneFile != nil else { continue }
            for root in rule.roots { byRoot[root, default: []].insert(ready) }
        }
    }

    /// Whether no rule waits for such a file.
    var isEmpty: Bool { byRoot.isEmpty }

    /// Whether a job may wait for the path.
    package func mayHold(_ path: PathBytes) -> Bool { candidates(for: path).contains { $0.mayBeMarker(path) } }

    /// What has to be asked, of rules whose roots hold the path.
    package func candidates(for path: PathBytes) -> [Readiness] {
        guard !byRoot.isEmpty else { return [] }
        return path.andParents.flatMap { byRoot[$0] ?? [] }
    }
}

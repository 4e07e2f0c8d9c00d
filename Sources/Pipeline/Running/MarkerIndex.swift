package import Rules
package import System

/// Finds the done files for other files, although no rule matches them.
///
/// They are indexed by root and found by the parent directories of a path, so rules for other directories add no
/// cost.
package struct MarkerIndex: Sendable {
    private var byRoot: [PathBytes: Set<Readiness>] = [:]

    package init(_ rules: [Rule]) {
        for rule in rules {
            guard let ready = rule.ready, ready.doneFile != nil else { continue }
            for root in rule.roots { byRoot[root, default: []].insert(ready) }
        }
    }

    /// Whether no rule waits for a done file.
    package var isEmpty: Bool { byRoot.isEmpty }

    /// Whether a job may wait for the path.
    package func mayHold(_ path: PathBytes) -> Bool { candidates(for: path).contains { $0.mayBeMarker(path) } }

    /// Returns the `ready` conditions to check, from rules whose roots contain the path.
    package func candidates(for path: PathBytes) -> [Readiness] {
        guard !byRoot.isEmpty else { return [] }
        return path.andParents.flatMap { byRoot[$0] ?? [] }
    }
}

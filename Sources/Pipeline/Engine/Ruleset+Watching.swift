import FileEvents
package import Rules
import System
package import Watching

extension Ruleset {
    /// The scope to watch for all rules together.
    package var scope: WatchScope {
        let roots = rules.flatMap { rule in
            rule.roots.map { WatchRoot(path: $0, backend: rule.backend, interval: rule.pollInterval) }
        }
        let markers = MarkerIndex(rules)
        return WatchScope(
            roots: roots, isRaw: rules.contains { !$0.events.isDisjoint(with: .raw) },
            hintsFoundFolders: rules.contains { $0.types.contains(.directory) },
            reaches: { reaches(below: $0) }, takes: { takes($0) || markers.mayHold($0) },
            mayTake: { mayTake(in: $0) || !markers.isEmpty })
    }
}

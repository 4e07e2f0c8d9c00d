package import FileEvents
import Synchronization
package import System

/// A ledger store in memory.
///
/// It can be called from any thread; concurrent calls wait for each other.
package final class MemoryStore: LedgerStore {
    private let trees = Mutex<[RuleID: LedgerTree]>([:])

    /// Creates an empty store.
    package init() {}

    /// Sets rows; an empty one deletes the stored row.
    package func set(_ rows: [RuleID: [PathBytes: LedgerRow]]) {
        trees.withLock { trees in
            for (rule, rows) in rows {
                for (path, row) in rows {
                    trees[rule, default: LedgerTree()].set(path, row.isEmpty ? nil : row)
                }
            }
        }
    }

    package func row(of rule: RuleID, at path: PathBytes) -> LedgerRow? { trees.withLock { $0[rule]?[path] } }

    package func paths(of rule: RuleID, handling identity: FileIdentity, limit: Int) -> [PathBytes] {
        trees.withLock { $0[rule]?.paths(of: identity, limit: limit) ?? [] }
    }

    package func rows(of rule: RuleID, below directory: PathBytes, after last: PathBytes?) -> [(PathBytes, LedgerRow)] {
        guard last == nil else { return [] }
        var rows: [(PathBytes, LedgerRow)] = []
        trees.withLock { trees in
            trees[rule]?.visit(inside: directory) { path, row in if path != directory { rows.append((path, row)) } }
        }
        return rows.sorted { $0.0 < $1.0 }
    }
}

import FileEvents
import LedgerReconciling
import Synchronization

/// A store in memory: what was committed outlives a simulated kill.
final class MemoryStore: LedgerStore {
    struct Contents {
        var rows: [RuleID: [PathBytes: LedgerRow]] = [:]
        var offers: [RuleID: [Offer]] = [:]
        var due: [RuleID: Set<PathBytes>] = [:]
    }

    let contents = Mutex(Contents())

    func row(of rule: RuleID, at path: PathBytes) -> LedgerRow? { contents.withLock { $0.rows[rule]?[path] } }

    func paths(of rule: RuleID, handling identity: FileIdentity) -> [PathBytes] {
        contents.withLock { contents in
            (contents.rows[rule] ?? [:]).filter { $0.value.handled.map { identity.includes($0.identity) } ?? false }
                .map(\.key)
        }
    }

    func rows(of rule: RuleID, below directory: PathBytes, after last: PathBytes?) -> [(PathBytes, LedgerRow)] {
        guard last == nil else { return [] }
        return contents.withLock { contents in
            (contents.rows[rule] ?? [:]).filter { $0.key != directory && $0.key.isInside(directory) }
                .sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        }
    }
}

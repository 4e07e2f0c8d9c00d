import FileEvents
import Reconciling
import Synchronization
import System

/// The changes of a commit.
struct StoreChanges: Sendable {
    /// Ledger rows; an empty row is deleted.
    var rows: [RuleID: [PathBytes: LedgerRow]] = [:]
    /// Offers by number; nil deletes the offer.
    var offers: [RuleID: [UInt64: Offer?]] = [:]
    /// Failed offers by number; nil deletes the offer.
    var failed: [RuleID: [UInt64: Offer?]] = [:]
    /// Due paths that are stored or deleted.
    var due: [RuleID: [PathBytes: DueChange]] = [:]
}

/// The store of a simulated run, in memory.
///
/// Committed changes survive a simulated kill.
final class SimulatedStore: LedgerStore {
    private struct Contents {
        var offers: [RuleID: [UInt64: Offer]] = [:]
        var failed: [RuleID: [UInt64: Offer]] = [:]
        var due: [RuleID: [PathBytes: Writer?]] = [:]
    }

    private let rows = MemoryStore()
    private let contents = Mutex(Contents())

    func row(of rule: RuleID, at path: PathBytes) -> LedgerRow? { rows.row(of: rule, at: path) }

    func paths(of rule: RuleID, handling identity: FileIdentity, limit: Int) -> [PathBytes] {
        rows.paths(of: rule, handling: identity, limit: limit)
    }

    func rows(of rule: RuleID, below directory: PathBytes, after last: PathBytes?) -> [(PathBytes, LedgerRow)] {
        rows.rows(of: rule, below: directory, after: last)
    }

    /// Returns all rows of a rule.
    func rows(of rule: RuleID) -> [PathBytes: LedgerRow] {
        var all: [PathBytes: LedgerRow] = [:]
        var last: PathBytes?
        while true {
            let page = rows(of: rule, below: "/", after: last)
            guard let end = page.last?.0 else { return all }
            all.merge(page) { $1 }
            last = end
        }
    }

    /// Returns the offers of a rule, sorted by number.
    func offers(of rule: RuleID) -> [Offer] {
        contents.withLock { ($0.offers[rule] ?? [:]).values.sorted { $0.number < $1.number } }
    }

    /// Returns the failed offers of a rule, sorted by number.
    func failedOffers(of rule: RuleID) -> [Offer] {
        contents.withLock { ($0.failed[rule] ?? [:]).values.sorted { $0.number < $1.number } }
    }

    func duePaths(of rule: RuleID) -> [StoredDuePath] {
        contents.withLock { contents in
            (contents.due[rule] ?? [:]).sorted { $0.key < $1.key }.map { StoredDuePath(path: $0.key, writer: $0.value) }
        }
    }

    func commit(_ changes: StoreChanges) {
        rows.set(changes.rows)
        contents.withLock { contents in
            for (rule, offers) in changes.offers {
                for (number, offer) in offers { contents.offers[rule, default: [:]][number] = offer }
            }
            for (rule, offers) in changes.failed {
                for (number, offer) in offers { contents.failed[rule, default: [:]][number] = offer }
            }
            for (rule, paths) in changes.due {
                for (path, change) in paths {
                    switch change {
                    case .stored(let writer): contents.due[rule, default: [:]].updateValue(writer, forKey: path)
                    case .deleted: contents.due[rule]?.removeValue(forKey: path)
                    }
                }
            }
        }
    }
}

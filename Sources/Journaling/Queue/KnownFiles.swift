import FileEvents
import Reconciling

/// The ledger, as far as the queue of jobs asks of it and changes it.
protocol KnownFiles {
    /// What is known of a path to a rule.
    func known(_ rule: String, _ path: PathBytes) -> Snapshot?

    /// Sets what is known.
    mutating func set(_ entry: LedgerEntry)
}

extension KnownFiles {
    mutating func set(_ rule: String, _ path: PathBytes, _ snapshot: Snapshot?) {
        set(LedgerEntry(view: rule, path: path, snapshot: snapshot))
    }
}

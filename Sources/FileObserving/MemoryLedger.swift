import FileEvents
import Reconciling

/// What an observer knows, in memory; the observer's thread alone holds it.
final class MemoryLedger: Ledger {
    private var tree = LedgerTree()

    init(_ snapshot: ObservationSnapshot?) {
        for var fact in snapshot?.facts ?? [] {
            // The numbers of mounts are others after the next one.
            fact.snapshot.mount = 0
            tree.set(fact.path, fact.snapshot)
        }
    }

    func apply(_ entries: [LedgerEntry]) {
        for entry in entries { tree.set(entry.path, entry.snapshot) }
    }

    /// All that is known, folders before what is in them.
    var facts: [ObservationSnapshot.Fact] {
        var facts: [ObservationSnapshot.Fact] = []
        visit(view: ObservationPlan.view, inside: "/") { path, snapshot in
            facts.append(ObservationSnapshot.Fact(path: path, snapshot: snapshot))
        }
        return facts.sorted { $0.path < $1.path }
    }

    // MARK: Ledger

    func snapshot(view: String, path: PathBytes) -> Snapshot? { tree[path] }

    func paths(view: String, identity: FileIdentity) -> [PathBytes] { tree.paths(of: identity) }

    func visit(view: String, inside folder: PathBytes, _ body: (PathBytes, Snapshot) -> Void) {
        tree.visit(inside: folder, body)
    }

    func hasPending(view: String, path: PathBytes) -> Bool { false }
}

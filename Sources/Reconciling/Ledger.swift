package import FileEvents

/// What was last accepted, for each view and path.
///
/// The reconciler only reads it: its owner commits the entries that it gives,
/// together with what follows from the events, before it asks for the next.
package protocol Ledger {
    /// The snapshot that was last accepted for the view and path.
    func snapshot(view: String, path: PathBytes) -> Snapshot?

    /// Whether the view knows the path: the same as having a snapshot of it, and cheaper where that has to be read.
    func knows(view: String, path: PathBytes) -> Bool

    /// The paths under which the view knows the file; several when it has hard links.
    ///
    /// An identity without a birth time stands for all files with its device and inode.
    func paths(view: String, identity: FileIdentity) -> [PathBytes]

    /// Calls the closure for all that the view knows in the folder, at any depth, and for the folder itself.
    ///
    /// The order is that of nothing. The closure must not call the ledger.
    func visit(view: String, inside folder: PathBytes, _ body: (PathBytes, Snapshot) -> Void)

    /// Whether something that was told of the path still waits to be taken, or is being handled.
    ///
    /// Of a file that is followed nothing more is read until then, so that its text
    /// stays in order. See ``Reconciler/addTaken(_:view:at:)``.
    func hasPending(view: String, path: PathBytes) -> Bool
}

extension Ledger {
    package func knows(view: String, path: PathBytes) -> Bool { snapshot(view: view, path: path) != nil }
}

/// One change of the ledger.
package struct LedgerEntry: Sendable, Hashable {
    package var view: String
    package var path: PathBytes
    /// What is known of the path now; nil to forget it.
    package var snapshot: Snapshot?

    package init(view: String, path: PathBytes, snapshot: Snapshot?) {
        self.view = view
        self.path = path
        self.snapshot = snapshot
    }
}

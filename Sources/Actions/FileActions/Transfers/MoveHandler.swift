package import ActionAPI
package import Rules
package import System

/// The `move` action: gives the file another path; between file systems it copies, and removes the source last.
package struct MoveHandler: FileHandler {
    private let trash: Trash

    package init(trash: Trash = Trash(home: nil)) { self.trash = trash }

    package let summary = HandlerDescription(
        "move",
        [
            "to": Destination.schema, "on_conflict": Conflict.schema, "allow": Jail.schema,
            "keep": CopyOptions.keepSchema(default: FileTransfer.Verb.moved.retained),
            "verify": CopyOptions.verifySchema,
        ], required: ["to"], traits: [.isBrief, .setsInputAside], outputTypes: nil,
        removal: InputRemoval("moves", to: .destination))

    package func plannedOutputs(of invocation: Invocation) -> [PathBytes] { Destination.planned(for: invocation) }

    package func handle(_ invocation: Invocation) throws(FileError) -> Outcome { try transfer(invocation).run() }

    /// Moves several files; the copies on another file system are flushed with one call for all.
    package func run(_ invocations: [Invocation]) -> [Outcome] { TransferGroup.run(invocations, transfer) }

    package func isDone(_ invocation: Invocation) -> Bool { transfer(invocation).isDone }

    private func transfer(_ invocation: Invocation) -> FileTransfer { FileTransfer(invocation, .moved, trash: trash) }
}

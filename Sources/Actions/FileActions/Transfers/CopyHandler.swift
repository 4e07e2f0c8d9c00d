package import ActionAPI
package import Rules
package import System

/// The `copy` action: creates a copy of the file, which is complete as soon as it is visible.
///
/// The bytes are written to a file without a name in the destination directory, and flushed. Then the file gets its
/// final name, so a process that watches the directory sees one complete file.
package struct CopyHandler: FileHandler {
    private let trash: Trash

    package init(trash: Trash = Trash(home: nil)) { self.trash = trash }

    package let summary = HandlerDescription(
        "copy",
        [
            "to": Destination.schema, "on_conflict": Conflict.schema, "allow": Jail.schema,
            "keep": CopyOptions.keepSchema(default: FileTransfer.Verb.copied.retained),
            "verify": CopyOptions.verifySchema,
            "durable": CopyOptions.durableSchema,
        ], required: ["to"], types: [.file], traits: [.sharesFile, .isBrief])

    package func plannedOutputs(of invocation: Invocation) -> [PathBytes] { Destination.planned(for: invocation) }

    package func handle(_ invocation: Invocation) throws(FileError) -> Outcome { try transfer(invocation).run() }

    /// Copies the files of a batch in groups, each of which is flushed by one call for the whole file system.
    package func run(_ invocations: [Invocation]) -> [Outcome] { TransferGroup.run(invocations, transfer) }

    private func transfer(_ invocation: Invocation) -> FileTransfer { FileTransfer(invocation, .copied, trash: trash) }
}

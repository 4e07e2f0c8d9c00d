package import ActionAPI
import PluginProtocol
package import Rules
package import System

/// The `copy`, `move` and `rename` actions.
///
/// The bytes of a copy are written to a file without a name in the destination directory, and flushed. Then the file
/// gets its final name, so a process that watches the directory sees one complete file. A move between file systems
/// copies, and removes the source last.
package struct TransferHandler: FileHandler {
    private let verb: FileTransfer.Verb
    private let trash: Trash
    package let summary: HandlerDescription

    private init(_ verb: FileTransfer.Verb, _ trash: Trash, _ summary: HandlerDescription) {
        (self.verb, self.trash, self.summary) = (verb, trash, summary)
    }

    package static func copy(trash: Trash = Trash(home: nil)) -> TransferHandler {
        var parameters = Destination.parameters(CopyOptions.parameters(default: FileTransfer.Verb.copied.retained))
        parameters["durable"] = CopyOptions.durableSchema
        return TransferHandler(
            .copied, trash,
            HandlerDescription(
                "copy", parameters, required: ["to"], types: [.file], traits: [.sharesFile, .isBrief]))
    }

    package static func move(trash: Trash = Trash(home: nil)) -> TransferHandler {
        TransferHandler(
            .moved, trash,
            HandlerDescription(
                "move", Destination.parameters(CopyOptions.parameters(default: FileTransfer.Verb.moved.retained)),
                required: ["to"], traits: [.isBrief, .setsInputAside], outputTypes: nil,
                removal: InputRemoval("moves", to: .destination)))
    }

    /// Creates the handler that gives the file another name in its directory.
    package static func rename(trash: Trash = Trash(home: nil)) -> TransferHandler {
        let name = ParameterSchema.string(
            "The new name, without a directory.", example: "${stem}-${mtime:%Y-%m-%d}.${extension}")
        return TransferHandler(
            .renamed, trash,
            HandlerDescription(
                "rename", ["name": name, "on_conflict": Conflict.schema], required: ["name"],
                traits: [.isBrief, .setsInputAside], removal: InputRemoval("renames", to: .name(parameter: "name"))))
    }

    package func plannedOutputs(of invocation: Invocation) -> [PathBytes] { Destination.planned(for: invocation) }

    package func handle(_ invocation: Invocation) throws(FileError) -> Outcome { try transfer(invocation).run() }

    /// Transfers the files of a batch in groups, in which the copies are flushed by one call for the whole file system.
    package func run(_ invocations: [Invocation]) -> [Outcome] { TransferGroup.run(invocations, transfer) }

    package func isDone(_ invocation: Invocation) -> Bool { verb != .copied && transfer(invocation).isDone }

    private func transfer(_ invocation: Invocation) -> FileTransfer { FileTransfer(invocation, verb, trash: trash) }
}

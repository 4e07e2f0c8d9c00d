package import ActionAPI
import PluginProtocol
package import Rules
import System

/// The `rename` action: gives the file another name in its directory.
package struct RenameHandler: FileHandler {
    private let trash: Trash

    package init(trash: Trash = Trash(home: nil)) { self.trash = trash }

    package let summary = HandlerDescription(
        "rename",
        [
            "name": .string("The new name, without a directory.", example: "${stem}-${mtime:%Y-%m-%d}.${extension}"),
            "on_conflict": Conflict.schema,
        ], required: ["name"], traits: [.isBrief, .setsInputAside],
        removal: InputRemoval("renames", to: .name(parameter: "name")))

    package func handle(_ invocation: Invocation) throws(FileError) -> Outcome {
        let name = Self.name(invocation)
        guard !name.bytes.isEmpty, !name.bytes.contains(.slash), !name.bytes.contains(0), name != ".", name != ".."
        else {
            throw .failed(
                "'\(name)' is not a file name; to put the file into another directory, use 'move'", code: "bad-name")
        }
        return try transfer(invocation).run()
    }

    package func isDone(_ invocation: Invocation) -> Bool { transfer(invocation).isDone }

    private func transfer(_ invocation: Invocation) -> FileTransfer {
        FileTransfer(invocation, .renamed, as: Self.name(invocation), trash: trash)
    }

    private static func name(_ invocation: Invocation) -> PathBytes {
        PathBytes(invocation.parameters["name"]?.bytes ?? [])
    }
}

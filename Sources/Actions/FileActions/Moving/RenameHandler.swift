package import ActionAPI
import FileEvents
import Glibc
import PluginProtocol
package import Rules
import System

/// The `rename` action: gives the file another name in its directory.
package struct RenameHandler: Handler {
    private let trash: Trash

    package init(trash: Trash = Trash(home: nil)) { self.trash = trash }

    package let summary = HandlerDescription(
        reference: HandlerReference(name: "rename"),
        parameters: ParameterSchema(
            type: "object",
            properties: [
                "name": ParameterSchema(
                    type: "string", examples: ["${stem}-${mtime:%Y-%m-%d}.${extension}"], minLength: 1,
                    description: "The new name, without a directory."),
                "on_conflict": Conflict.schema,
            ],
            required: ["name"], additionalProperties: false),
        events: [.created, .modified, .moved, .attributes], traits: [.isBrief, .removesInput])

    package func run(_ invocation: Invocation) -> Outcome {
        Outcome.of { () throws(FileError) in
            let name = PathBytes(invocation.parameters["name"]?.bytes ?? [])
            let bytes = name.bytes
            guard !bytes.isEmpty, !bytes.contains(.slash), !bytes.contains(0), name != ".", name != ".." else {
                throw FileError(
                    Outcome(
                        .failed, "'\(name)' is not a file name; to put the file into another directory, use 'move'",
                        code: "bad-name"))
            }
            let move = FileMove(invocation, done: "renamed")
            let event = invocation.job.event
            let conflict = Conflict(invocation)
            let source: SourceFile
            do throws(FileError) {
                source = try SourceFile(invocation)
            } catch {
                guard error.isOfAnotherFile, invocation.hasBegunBefore else { throw error }
                let folder = try SourceFile.openFolder(of: event.path, root: event.root)
                return try move.afterwards(FilePlace(invocation, folder, name, conflict, trash: trash), error)
            }
            let place = FilePlace(invocation, source.folder, name, conflict, trash: trash)
            if let outcome = try move.earlier(place, than: source) { return outcome }
            return try move.run(source, to: place)
        }
    }

    package func isDone(_ invocation: Invocation) -> Bool {
        let event = invocation.job.event
        let name = PathBytes(invocation.parameters["name"]?.bytes ?? [])
        guard let folder = try? SourceFile.openFolder(of: event.path, root: event.root) else { return false }
        let place = FilePlace(invocation, folder, name, Conflict(invocation), trash: trash)
        return (try? place.earlierMove()).flatMap(\.self) != nil
    }
}

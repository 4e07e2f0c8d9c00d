import FileEvents
import PluginProtocol
package import Rules

/// `move`: gives the file another path; between file systems by a copy, and the source goes last.
package struct MoveHandler: Handler {
    private let trash: Trash

    package init(trash: Trash = Trash(home: nil)) { self.trash = trash }

    package let summary = HandlerDescription(
        reference: HandlerReference(name: "move"),
        parameters: ParameterSchema(
            type: "object",
            properties: [
                "to": Destination.toSchema, "on_conflict": Conflict.schema, "allow": Jail.schema,
                "keep": CopyOptions.keepSchema(default: FileMove.kept), "verify": CopyOptions.verifySchema,
            ],
            required: ["to"], additionalProperties: false),
        events: [.created, .modified, .moved, .attributes])

    package func run(_ invocation: Invocation) -> Outcome {
        Outcome.of { () throws(FileFault) in
            let move = FileMove(invocation, done: "moved")
            let source: SourceFile
            do throws(FileFault) {
                source = try SourceFile(invocation)
            } catch {
                guard error.outcome.code == "gone", invocation.hasBegunBefore else { throw error }
                return try move.afterwards(FilePlace(invocation, trash: trash), error)
            }
            return try move.run(source, to: FilePlace(invocation, trash: trash))
        }
    }
}

extension Invocation {
    /// Whether an attempt before this one may have done a part of the work.
    var hasBegunBefore: Bool { job.attempt > 1 || job.isInterrupted }
}

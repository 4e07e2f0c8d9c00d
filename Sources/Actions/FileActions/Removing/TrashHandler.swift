package import ActionAPI
import PluginProtocol
package import Rules

/// The `trash` action: moves the file to the desktop's trash, from which it can be restored.
package struct TrashHandler: FileHandler {
    private let trash: Trash

    package init(trash: Trash) { self.trash = trash }

    package let summary = HandlerDescription(
        "trash", [:], traits: .isBrief, removal: InputRemoval("moves to the trash"))

    package func handle(_ invocation: Invocation) throws(FileError) -> Outcome {
        let source = try SourceFile(invocation)
        guard let change = try trash.put(source.name, in: source.directory, expecting: source.metadata) else {
            throw .gone
        }
        var outputs = [change.path]
        if case .trashed(_, _, let info) = change.kind { outputs.append(info) }
        var outcome = Outcome(.succeeded, "moved to the trash at \(change.path)", outputs: outputs)
        outcome.changes = [change]
        return outcome
    }
}

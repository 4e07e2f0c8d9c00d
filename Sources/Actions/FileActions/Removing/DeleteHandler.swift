package import ActionAPI
import FileEvents
import Glibc
import PluginProtocol
package import Rules
import System

/// The `delete` action: removes the file permanently.
package struct DeleteHandler: Handler {
    package init() {}

    package let summary = HandlerDescription(
        reference: HandlerReference(name: "delete"),
        parameters: ParameterSchema(
            type: "object",
            properties: [
                "recursive": ParameterSchema(
                    type: "boolean", default: false,
                    description: "Whether a directory is deleted with its contents; otherwise only an empty one is.")
            ],
            additionalProperties: false),
        events: [.created, .modified, .moved, .attributes], types: [.file, .directory, .symlink], traits: .removesInput)

    package func run(_ invocation: Invocation) -> Outcome {
        Outcome.of { () throws(FileError) in try delete(invocation) }
    }

    private func delete(_ invocation: Invocation) throws(FileError) -> Outcome {
        let source = try SourceFile(invocation)
        let folder = source.folder
        let stop = invocation.stop
        let deadline = ContinuousClock.now + invocation.timeout
        var remove: ((PathBytes) -> Int32)?
        switch source.facts.type {
        case .file, .symlink: break
        case .other:
            return Outcome(
                .failed, "'\(source.path)' is not a file, directory or link, and only these are removed",
                code: "not-a-file")
        case .directory where invocation.flag("recursive", default: false):
            remove = { name in
                DirectoryRemoval.remove(name, in: folder) { stop.isRaised || .now > deadline }
            }
        case .directory:
            let inner = DirectoryHandle(dup(source.file.descriptor), source.path)
            guard try inner.names().isEmpty else {
                return Outcome(
                    .failed,
                    "'\(source.path)' is a directory that is not empty; set 'recursive: true' to remove its "
                        + "contents",
                    code: "not-empty")
            }
            remove = { name in name.withCString { unlinkat(folder.descriptor, $0, AT_REMOVEDIR) } == 0 ? 0 : errno }
        }
        do throws(FileError) {
            switch try Removal.remove(source.name, in: folder, if: source.facts, remove: remove) {
            case .removed: return Outcome(.succeeded, "deleted")
            case .gone: throw .gone
            case .changed, .isTwin: throw .changed
            }
        } catch {
            guard error.errno == EINTR else { throw error }
            return stop.isRaised
                ? .interrupted("stopped while deleting") : .timedOut("timed out while deleting")
        }
    }
}

package import ActionAPI
import Glibc
import PluginProtocol
package import Rules
import System

/// The `delete` action: removes the file permanently.
package struct DeleteHandler: FileHandler {
    package init() {}

    package let summary = HandlerDescription(
        "delete",
        [
            "recursive": .flag(
                "Whether a directory is deleted with its contents; otherwise only an empty one is.", default: false)
        ], types: [.file, .directory, .symlink], traits: .setsInputAside, removal: InputRemoval("deletes"))

    package func handle(_ invocation: Invocation) throws(FileError) -> Outcome {
        let source = try SourceFile(invocation)
        let directory = source.directory
        let limit = invocation.limit
        var remove: (PathBytes) -> Int32 = directory.unlink
        switch source.metadata.type {
        case .file, .symlink: break
        case .other:
            throw .failed(
                "'\(source.path)' is not a file, directory or link, and only these are removed", code: "not-a-file")
        case .directory where invocation.flag("recursive", default: false):
            remove = { name in DirectoryRemoval.remove(name, in: directory) { limit.isOver } }
        case .directory:
            let inner = DirectoryHandle(source.file, source.path)
            guard try inner.names().isEmpty else {
                throw .failed(
                    "'\(source.path)' is a directory that is not empty; set 'recursive: true' to remove its contents",
                    code: "not-empty")
            }
            remove = directory.removeDirectory
        }
        do throws(FileError) {
            switch try Removal.remove(source.name, in: directory, if: source.metadata, remove: remove) {
            case .removed: return Outcome(.succeeded, "deleted")
            case .gone: throw .gone
            case .changed, .isTwin: throw .changed
            }
        } catch {
            guard error.errno == EINTR else { throw error }
            return limit.stop.isRaised
                ? .interrupted("stopped while deleting") : .timedOut("timed out while deleting")
        }
    }
}

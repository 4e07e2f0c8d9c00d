import ActionAPI
import FileEvents
import Glibc
import PluginProtocol
import Rules
import System

/// The handling of an existing destination.
enum Conflict: String, CaseIterable, Sendable {
    case rename, overwrite, skip, fail
    case renameExisting = "rename_existing"
    case trash, deduplicate

    static let schema = ParameterSchema.choice(
        allCases.map(\.rawValue),
        "What to do if the path exists: add a number to the new name, overwrite, skip, fail, add a number "
            + "to the old name, move the old file to the trash; 'deduplicate' keeps an old file of the same "
            + "content, and otherwise works as 'rename'.",
        default: "rename")

    /// Reads the parameter `on_conflict`.
    init(_ invocation: Invocation) {
        self = invocation.text("on_conflict").flatMap(Conflict.init(rawValue:)) ?? .rename
    }
}

/// The destination that `to:` names.
enum Destination {
    static let schema = ParameterSchema.path(
        "The new path, or with a slash at its end the directory to put the file into. Missing directories are created.",
        example: "done/")

    /// Returns the parameters of a handler that gives a file the path in `to`, and its other ones.
    static func parameters(
        to schema: ParameterSchema = schema, _ others: [String: ParameterSchema] = [:]
    ) -> [String: ParameterSchema] {
        others.merging(["to": schema, "on_conflict": Conflict.schema, "allow": Jail.schema]) { other, _ in other }
    }

    /// Returns the path that `to` names.
    ///
    /// - Throws: A ``FileError`` if the expanded path is invalid.
    static func path(_ invocation: Invocation) throws(FileError) -> PathBytes {
        let to = invocation.parameters["to"]?.bytes ?? []
        guard !to.isEmpty, !to.contains(0) else { throw FileError(EINVAL, "'to' is empty") }
        var path = invocation.baseDirectory.resolving(to)
        if to.last == .slash { path = path.appending(invocation.job.event.path.lastComponent) }
        return path.normalized
    }

    /// Returns the path that the invocation would write; none if that depends on an existing file.
    static func planned(for invocation: Invocation) -> [PathBytes] {
        guard let path = try? path(invocation), case .absent = KernelFileSystem().stat(path) else { return [] }
        return [path]
    }
}

import ActionAPI
import CAlightLinux
import FileEvents
import Glibc
import PluginProtocol
import Rules
import System

/// The directories in which a handler may write.
///
/// A path is first checked by name: outside of all roots it is refused. Then the directory is opened beneath its root,
/// so that no link leads out of it, and all operations use that descriptor.
///
/// The directories that `allow` names, or else the roots of the rule and the literal heads of its destinations, are
/// specified by the rule's author. Links on the path *to* them are followed. Below them, a link is followed only if it
/// stays there. Root follows only links that no other user can replace.
struct Jail {
    /// The directories of `allow`, or if that is missing the rule's roots and the literal heads.
    private let roots: [PathBytes]
    /// Whether `allow` names the directories.
    private let areNamed: Bool
    /// The record of the directories that are created.
    private var record: MadeDirectories?

    /// The schema of the parameter `allow`, for handlers that write.
    static let schema = ParameterSchema(
        type: "array", examples: [["."]],
        items: ParameterSchema(type: "string", minLength: 1, role: ParameterSchema.literal), minItems: 1,
        description:
            "The directories in which files may be created, replaced and removed. Default: those that the rule "
            + "watches, and the part of the path before its first placeholder."
    )

    /// Creates the jail of an action.
    ///
    /// - Parameters:
    ///   - invocation: The invocation with its `allow` and the roots of its rule.
    ///   - parameters: The parameters that specify where the action writes; their literal heads are allowed.
    init(_ invocation: Invocation, parameters: [String] = ["to"]) {
        if case .array(let directories)? = invocation.parameters["allow"], !directories.isEmpty {
            self.init(directories.compactMap(\.bytes).map { invocation.baseDirectory.resolving($0) })
        } else {
            let roots = invocation.roots + [invocation.job.event.root]
            self.init(roots + parameters.compactMap { invocation.literalHeads[$0] }, areNamed: false)
        }
        record = invocation.madeDirectories
    }

    /// Creates a jail of these directories alone.
    init(_ roots: [PathBytes], areNamed: Bool = true) {
        self.roots = roots.map(\.normalized)
        self.areNamed = areNamed
    }

    /// Returns the root through which a path is opened: the nearest directory of `allow`, or else the outermost root.
    ///
    /// A destination inside a watched directory is in a place that others may write to, so a link there was not
    /// specified by the rule's author.
    private func root(of directory: PathBytes) -> PathBytes? {
        let outer = roots.filter { directory.isInside($0) }
        return areNamed
            ? outer.max { $0.bytes.count < $1.bytes.count } : outer.min { $0.bytes.count < $1.bytes.count }
    }

    /// Opens a directory, and optionally creates it with its parent directories.
    ///
    /// - Parameters:
    ///   - directory: An absolute path.
    ///   - making: Whether missing directories are created, with the mode of the umask.
    /// - Returns: The open directory.
    /// - Throws: A ``FileError`` if the directory is outside of all roots, or cannot be opened or created.
    func open(_ directory: PathBytes, making: Bool) throws(FileError) -> DirectoryHandle {
        let directory = directory.normalized
        guard let root = root(of: directory) else { throw refusal(directory) }
        let base = try openRoot(root, making: making)
        let relative = PathBytes(directory.relative(to: root) ?? [])
        guard !relative.bytes.isEmpty else { return base }
        return try open(relative, in: base, making: making)
    }

    /// Opens a directory that the rule's author specified, through the links that lead to it.
    private func openRoot(_ root: PathBytes, making: Bool) throws(FileError) -> DirectoryHandle {
        do throws(SystemError) {
            return try DirectoryHandle(opening: root)
        } catch {
            guard error.errno == ENOENT, making, root.parent != root else { throw self.error(error.errno, root) }
        }
        let parent = try openRoot(root.parent, making: true)
        return try open(PathBytes(root.lastComponent), in: parent, making: true)
    }

    private func open(
        _ relative: PathBytes, in base: DirectoryHandle, making: Bool
    ) throws(FileError) -> DirectoryHandle {
        let path = base.path.appending(relative.bytes)
        for _ in 0..<Self.mostTries {
            let opened = relative.withCString { cal_open_beneath(base.descriptor, $0, CAL_OPEN_DIRECTORY, 1) }
            if opened >= 0 { return DirectoryHandle(opened, path) }
            guard opened == -ENOENT, making else { throw error(-opened, path) }
            let parent = relative.bytes.contains(.slash) ? try open(relative.parent, in: base, making: true) : base
            let name = PathBytes(relative.lastComponent)
            let made = parent.makeDirectory(name, mode: 0o777)
            guard made == 0 || made == EEXIST else { throw error(made, path) }
            if made == 0, let metadata = try parent.metadata(of: name) {
                record?.append(FileChange(.madeDirectory(path), left: FileMark(metadata)))
            }
            // A link without a target exists, but is not a directory.
            if made != 0, try parent.metadata(of: name)?.type == .symlink { throw error(ENOTDIR, path) }
        }
        throw error(ENOENT, path)
    }

    /// How often a directory is created that another process removes at once.
    private static let mostTries = 8

    private func error(_ errno: Int32, _ directory: PathBytes) -> FileError {
        switch errno {
        case EXDEV, ELOOP:
            FileError(untrustedLinkOn: directory)
                ?? .failed(
                    "'\(directory)' leads out of '\(root(of: directory) ?? directory)' through a symbolic link; "
                        + "name the directory that it leads to in 'to' or 'allow'", code: "outside")
        case ENOENT: FileError(errno, "cannot open the directory '\(directory)'")
        default: FileError(errno, "cannot create or open the directory '\(directory)'")
        }
    }

    private func refusal(_ directory: PathBytes) -> FileError {
        let list = Set(roots).sorted().map { "'\($0)'" }.joined(separator: ", ")
        return .failed("'\(directory)' is outside of \(list); if that is intended, add it to 'allow'", code: "outside")
    }
}

import CAlightLinux
package import FileEvents
import Glibc
package import Rules
package import System

/// A path that a program is given: its working directory, or a file or directory of its sandbox.
///
/// It is opened once, and `alight-launch` receives the descriptor, so links and directories that other users create on
/// the path afterwards have no effect.
package struct ProgramPath: Sendable, Hashable, ExpressibleByStringLiteral {
    package var path: PathBytes
    /// The directory that no symbolic link may lead out of; nil for a path that the rule itself names.
    package var base: PathBytes?

    package init(_ path: PathBytes) { self.path = path }

    package init(stringLiteral path: String) { self.init(PathBytes(path)) }

    /// - Parameters:
    ///   - path: A path that contains names given by other users.
    ///   - base: The directory that the rule names; for a path outside of it, the path's own directory is used.
    package init(_ path: PathBytes, beneath base: PathBytes) {
        self.path = path
        self.base = path.isInside(base) ? base : path.parent
    }

    /// Opens the path (`O_PATH`) as a directory.
    package func openDirectory() throws(SystemError) -> OpenFile { try open(CAL_OPEN_DIRECTORY, cal_open_root) }

    /// Opens the path (`O_PATH`); opens a symbolic link itself where other users could have named it.
    package func openEntry() throws(SystemError) -> OpenFile { try open(CAL_OPEN_ENTRY, cal_open_target) }

    private func open(
        _ kind: cal_opening, _ openNamed: (UnsafePointer<CChar>?) -> Int32
    ) throws(SystemError) -> OpenFile {
        guard let base, path != base else { return try OpenFile(opened: path.withCString { openNamed($0) }) }
        let directory = try OpenFile(opened: base.withCString { cal_open_root($0) })
        let relative = PathBytes(path.relative(to: base) ?? path.bytes[...])
        return try withExtendedLifetime(directory) { () throws(SystemError) in
            try OpenFile(opened: relative.withCString { cal_open_beneath(directory.descriptor, $0, kind, 1) })
        }
    }

    /// Returns why it could not be opened.
    package func reason(_ error: Int32) -> String {
        guard error == EXDEV || error == ELOOP else { return SystemError(errno: error).description }
        if let refusal = LinkTrust.refusal(on: path) { return refusal }
        return base.map { "it leads out of '\($0)' through a symbolic link" } ?? SystemError(errno: error).description
    }
}

extension ProgramPath {
    /// Creates the path for a template; in one with placeholders, names come from other users.
    ///
    /// - Parameters:
    ///   - path: The template with its placeholders filled in, as an absolute path.
    ///   - template: The template.
    ///   - directory: The directory that relative paths are relative to.
    ///   - event: The event whose values the placeholders have.
    package init(_ path: PathBytes, of template: Template, in directory: PathBytes, for event: FileEvent) {
        self =
            template.literal == nil
            ? ProgramPath(path, beneath: template.literalDirectory(in: directory) ?? event.root) : ProgramPath(path)
    }
}

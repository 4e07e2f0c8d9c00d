import CAlightLinux
import FileEvents
import Glibc
package import System

/// A path that a program is given: the directory that it works in, or a file or directory of its sandbox.
///
/// It is opened once, and `alight-launch` gets what was opened, so that it doesn't matter which links and directories
/// other users put on the way afterwards.
package struct ProgramPath: Sendable, Hashable, ExpressibleByStringLiteral {
    package var path: PathBytes
    /// The directory that no symbolic link may lead out of; nil for a path that the rule itself names.
    package var base: PathBytes?

    package init(_ path: PathBytes) { self.path = path }

    package init(stringLiteral path: String) { self.init(PathBytes(path)) }

    /// - Parameters:
    ///   - path: A path in which names come from others.
    ///   - base: The directory that the rule names; of a path that is not in it, its own directory is meant.
    package init(_ path: PathBytes, beneath base: PathBytes) {
        self.path = path
        self.base = path.isInside(base) ? base : path.parent
    }

    /// Opens it (`O_PATH`) as a directory.
    func openDirectory() throws(SystemError) -> OpenFile { try open(CAL_OPEN_FOLDER, cal_open_root) }

    /// Opens it (`O_PATH`); a symbolic link itself where others could have given it its name.
    func openEntry() throws(SystemError) -> OpenFile { try open(CAL_OPEN_ENTRY, cal_open_target) }

    private func open(
        _ kind: cal_opening, _ openNamed: (UnsafePointer<CChar>?) -> Int32
    ) throws(SystemError) -> OpenFile {
        guard let base, path != base else { return try Self.opened(path.withCString { openNamed($0) }) }
        let folder = try Self.opened(base.withCString { cal_open_root($0) })
        let relative = PathBytes(path.relative(to: base) ?? path.bytes[...])
        return try Self.opened(
            withExtendedLifetime(folder) { relative.withCString { cal_open_beneath(folder.descriptor, $0, kind, 1) } })
    }

    private static func opened(_ descriptor: Int32) throws(SystemError) -> OpenFile {
        guard descriptor >= 0 else { throw SystemError(errno: -descriptor) }
        return OpenFile(descriptor)
    }

    /// Why it could not be opened.
    func failure(_ error: SystemError, to purpose: String) -> LaunchFailure {
        LaunchFailure("cannot \(purpose): \(reason(error.errno))", errno: error.errno)
    }

    private func reason(_ error: Int32) -> String {
        guard error == EXDEV || error == ELOOP else { return String(cString: strerror(error)) }
        if let link = OwnershipCheck.untrustedLink(on: path) {
            return "root does not follow the symbolic link '\(link.path)', which \(link.others) could replace"
        }
        return base.map { "it leads out of '\($0)' by a symbolic link" } ?? String(cString: strerror(error))
    }
}

package import ActionAPI
import CAlightLinux
import Glibc
import PluginProtocol
package import Rules
package import System

/// The desktop's trash, as defined by the Trash specification 1.0 of freedesktop.org.
///
/// A file goes to the trash of its own file system, so nothing is copied: to the home trash if that is on the same file
/// system, else to `.Trash/UID` in the top directory if an administrator has created `.Trash`, else to `.Trash-UID`.
/// The file that records the original path is created first, with a unique name. Then the file itself is renamed.
package struct Trash: Sendable {
    /// `$XDG_DATA_HOME/Trash`; nil if there is no home directory.
    private let home: PathBytes?
    private let clock: LocalClock

    package init(home: PathBytes?, clock: LocalClock = .system) {
        self.home = home
        self.clock = clock
    }

    /// A trash directory, as its two subdirectories.
    private struct Can {
        var files: DirectoryHandle
        var info: DirectoryHandle
        /// The original path that is recorded for the file.
        var recorded: [UInt8]
    }

    /// The maximum length of a name in bytes, with space for a number and `.trashinfo`.
    private static let longestName = 230
    private static let mostNumbers = 10_000

    /// Moves a file to the trash.
    ///
    /// - Parameters:
    ///   - name: The name of the file.
    ///   - directory: The directory of the file.
    ///   - expected: The snapshot whose identity the file must have; nil for any file.
    /// - Returns: The change; nil if there is no file of that name.
    /// - Throws: A ``FileError`` if a system call fails, or if it is a different file by now.
    func put(
        _ name: PathBytes, in directory: DirectoryHandle, expecting expected: Snapshot? = nil
    ) throws(FileError) -> FileChange? {
        guard let metadata = try directory.metadata(of: name) else { return nil }
        if let expected, metadata.identity != expected.identity { throw .changed }
        let real = try Self.realPath(of: directory).appending(name.bytes)
        var problem = FileError(EXDEV, "there is no trash for '\(directory.path(of: name))'")
        for find in [homeCan, topCan] {
            do throws(FileError) {
                guard let can = try find(directory, metadata, real) else { continue }
                return try put(name, in: directory, metadata, can)
            } catch {
                // A mount within one file system: the next trash may work.
                guard error.errno == EXDEV || error.errno == EACCES || error.errno == EROFS else { throw error }
                problem = error
            }
        }
        throw problem
    }

    private func put(
        _ name: PathBytes, in directory: DirectoryHandle, _ metadata: Snapshot, _ can: Can
    ) throws(FileError) -> FileChange? {
        let recorded = String(percentEncoding: can.recorded)
        let now = DiskProbe.now().seconds
        // Without the `Z` at its end: the local time, as `2026-11-21T14:02:11`.
        let date = Timestamp(seconds: now + clock.offset(now), nanoseconds: 0).description.dropLast()
        let text = Array("[Trash Info]\nPath=\(recorded)\nDeletionDate=\(date)\n".utf8)
        for number in 1..<Self.mostNumbers {
            let mark = number == 1 ? "" : ".\(number)"
            let location = PathBytes(name.bytes.prefix(Self.longestName) + Array(mark.utf8))
            let info = PathBytes(location.bytes + Array(".trashinfo".utf8))
            let descriptor = can.info.create(info, mode: 0o600)
            guard descriptor >= 0 else {
                if errno == EEXIST { continue }
                throw FileError(errno, "cannot create '\(can.info.path(of: info))'")
            }
            var error = text.withUnsafeBytes { FileIO.write($0, to: descriptor, at: 0) }
            close(descriptor)
            if error == 0 { error = directory.rename(name, to: can.files, location, CAL_RENAME_NEW) }
            guard error == 0 else {
                can.info.unlink(info)
                switch error {
                case EEXIST: continue
                case ENOENT: return nil
                default: throw FileError(error, "cannot move '\(directory.path(of: name))' to '\(can.files.path)'")
                }
            }
            guard let there = try can.files.metadata(of: location), there.identity == metadata.identity else {
                // Another process replaced the file before the rename.
                try Removal.restore(location, name, from: can.files, to: directory)
                can.info.unlink(info)
                throw .changed
            }
            return FileChange(
                .trashed(
                    from: directory.path(of: name), to: can.files.path(of: location), info: can.info.path(of: info)),
                left: FileMark(there))
        }
        throw FileError(EEXIST, "there are \(Self.mostNumbers) files like '\(name)' in '\(can.files.path)'")
    }

    // MARK: - Choice of the trash

    private func homeCan(_ directory: DirectoryHandle, _ file: Snapshot, _ real: PathBytes) throws(FileError) -> Can? {
        guard let home else { return nil }
        // Other users must not have access to a directory that is created for the trash.
        let existing = home.andParents.first { KernelFileSystem().exists($0) }.flatMap(KernelFileSystem().resolve)
        guard KernelFileSystem().identity(of: existing ?? "/")?.device == file.identity.device else { return nil }
        let data = try Jail([home.parent]).open(home.parent, making: true)
        return try can(in: data, PathBytes(home.lastComponent), recorded: real.bytes)
    }

    private func topCan(_ directory: DirectoryHandle, _ file: Snapshot, _ real: PathBytes) throws(FileError) -> Can? {
        let (top, depth) = try Self.top(of: directory)
        let names = real.bytes.split(separator: .slash)
        guard names.count > depth else { return nil }
        let recorded = Array(names.suffix(depth + 1).joined(separator: [.slash]))
        let user = "\(geteuid())"
        if let shared = try? sharedCan(in: top, user, recorded: recorded) { return shared }
        return try can(in: top, PathBytes(".Trash-\(user)"), recorded: recorded)
    }

    /// Returns the user's directory in a `.Trash` that an administrator created for all users: not a link, and sticky.
    private func sharedCan(in top: DirectoryHandle, _ user: String, recorded: [UInt8]) throws(FileError) -> Can? {
        let name: PathBytes = ".Trash"
        guard let there = try top.metadata(of: name), there.type == .directory, there.mode & UInt16(S_ISVTX) != 0,
            let shared = top.openDirectory(name), try shared.metadata(of: ".")?.identity == there.identity
        else { return nil }
        return try can(in: shared, PathBytes(user), recorded: recorded)
    }

    /// Returns a trash directory, created if necessary; it must belong to the user and must not be a link.
    private func can(in directory: DirectoryHandle, _ name: PathBytes, recorded: [UInt8]) throws(FileError) -> Can {
        let trash = try Self.own(name, in: directory)
        return Can(files: try Self.own("files", in: trash), info: try Self.own("info", in: trash), recorded: recorded)
    }

    private static func own(_ name: PathBytes, in directory: DirectoryHandle) throws(FileError) -> DirectoryHandle {
        let path = directory.path(of: name)
        let error = directory.makeDirectory(name, mode: 0o700)
        guard error == 0 || error == EEXIST else { throw FileError(error, "cannot create the directory '\(path)'") }
        let own = try directory.opened(name, CAL_OPEN_DIRECTORY) {
            FileError($0, "cannot open the directory '\(path)'")
        }
        guard try own.metadata().uid == geteuid() else { throw FileError(EACCES, "'\(path)' belongs to another user") }
        return DirectoryHandle(own, path)
    }

    /// Returns the topmost directory of the same mount, and how many levels the directory is below it.
    private static func top(of directory: DirectoryHandle) throws(FileError) -> (DirectoryHandle, depth: Int) {
        var here = DirectoryHandle(directory.file, try realPath(of: directory))
        var depth = 0
        while here.path.parent != here.path {
            let above = openat(here.descriptor, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            guard above >= 0 else { break }
            let next = DirectoryHandle(above, here.path.parent)
            guard let inner = try? here.file.snapshot(), let outer = try? next.file.snapshot(),
                inner.mount == outer.mount, inner.identity.device == outer.identity.device
            else { break }
            here = next
            depth += 1
        }
        return (here, depth)
    }

    private static func realPath(of directory: DirectoryHandle) throws(FileError) -> PathBytes {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
        let length = cal_descriptor_path(directory.descriptor, &buffer, buffer.count)
        guard length > 0 else { throw FileError(Int32(-length), "cannot determine the path of '\(directory.path)'") }
        return PathBytes(buffer[..<Int(length)].map { UInt8(bitPattern: $0) })
    }
}

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

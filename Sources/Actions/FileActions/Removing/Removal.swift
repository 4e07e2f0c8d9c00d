package import ActionAPI
import CAlightLinux
import Glibc
import PluginProtocol
package import Rules
import System

/// The removal of a name, provided that it still belongs to the same file.
///
/// Another process could put a new file there between a check and the removal. Therefore the file is first renamed away
/// and then checked. A different file gets its name back.
enum Removal {
    /// The result of a removal.
    enum Result: Equatable {
        case removed
        /// Another process removed the file.
        case gone
        /// Another file or other content had the name, and has it again.
        case changed
        /// The file that must stay vanished with the name, so both names are the same file: through another mount of
        /// the same directory, or on a file system that is not case-sensitive. The name is restored.
        case isTwin
    }

    /// A name that must still exist after another one was removed, because it is the reason for the removal.
    struct Twin {
        var directory: DirectoryHandle
        var name: PathBytes

        /// Whether the file can still be opened; a stat alone could be answered from a cache of the file system.
        var exists: Bool {
            do throws(SystemError) {
                _ = try directory.open(name, CAL_OPEN_READING)
                return true
            } catch {
                return error.errno != ENOENT && error.errno != ESTALE
            }
        }
    }

    /// Removes a file that is known to exist elsewhere, or that is to be deleted.
    ///
    /// - Parameters:
    ///   - name: The name to remove.
    ///   - directory: The directory that contains the name.
    ///   - metadata: The metadata that the file had when it was copied.
    ///   - twin: The name that must exist without this one; nil if the file is to be deleted in any case.
    ///   - remove: Removes a name, and returns 0 or the errno.
    /// - Returns: The result.
    /// - Throws: A ``FileError`` if a system call fails; the name is then restored.
    static func remove(
        _ name: PathBytes, in directory: DirectoryHandle, if metadata: Snapshot, excluding twin: Twin? = nil,
        remove: ((PathBytes) -> Int32)? = nil
    ) throws(FileError) -> Result {
        let remove = remove ?? directory.unlink
        // A name that is too long for a temporary name could not be restored in full, so the file is checked in place.
        guard name.bytes.count <= TemporaryName.longestName else {
            return try removeInPlace(name, in: directory, if: metadata, twin, remove)
        }
        let taken = TemporaryName.taken(name)
        // The lock protects the renamed file from a cleanup; a directory can be locked, too.
        let locked = try? directory.open(name, CAL_OPEN_READING)
        if let locked { TemporaryName.lock(locked.descriptor) }
        switch directory.rename(name, to: directory, taken, CAL_RENAME_NEW) {
        case 0: break
        case ENOENT: return .gone
        case let error: throw FileError(error, "cannot remove '\(directory.path(of: name))'")
        }
        guard let there = try directory.metadata(of: taken) else { return .gone }
        // The rename has changed only the time of the last status change.
        let isSame = isSame(there, metadata)
        if isSame, twin?.exists ?? true {
            let error = remove(taken)
            if error == 0 || error == ENOENT { return .removed }
            try restore(taken, name, from: directory, to: directory)
            throw FileError(error, "cannot remove '\(directory.path(of: name))'")
        }
        try restore(taken, name, from: directory, to: directory)
        return isSame ? .isTwin : .changed
    }

    /// Whether the file is the known one; a directory is the same even if its contents have changed.
    private static func isSame(_ there: Snapshot, _ metadata: Snapshot) -> Bool {
        there.type == .directory ? there.identity == metadata.identity : there.hasSameContent(as: metadata)
    }

    private static func removeInPlace(
        _ name: PathBytes, in directory: DirectoryHandle, if metadata: Snapshot, _ twin: Twin?,
        _ remove: (PathBytes) -> Int32
    ) throws(FileError) -> Result {
        guard let there = try directory.metadata(of: name) else { return .gone }
        guard isSame(there, metadata) else { return .changed }
        if let twin {
            // A shorter name shows whether the other file vanishes with this name.
            let short = TemporaryName.taken("long")
            guard directory.rename(name, to: directory, short, CAL_RENAME_NEW) == 0 else { return .gone }
            let exists = twin.exists
            try restore(short, name, from: directory, to: directory)
            guard exists else { return .isTwin }
        }
        let error = remove(name)
        if error == 0 || error == ENOENT { return .removed }
        throw FileError(error, "cannot remove '\(directory.path(of: name))'")
    }

    /// Restores the name of a file that was renamed away, also from another directory, or gives it a numbered one if
    /// another file has the name.
    static func restore(
        _ taken: PathBytes, _ name: PathBytes, from: DirectoryHandle, to directory: DirectoryHandle
    ) throws(FileError) {
        for number in 0..<NumberedName.most {
            switch from.rename(taken, to: directory, NumberedName.numbered(name, number), CAL_RENAME_NEW) {
            case 0, ENOENT: return
            case EEXIST: continue
            case let error:
                throw FileError(error, "cannot rename '\(from.path(of: taken))' back to '\(name)'")
            }
        }
    }
}

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

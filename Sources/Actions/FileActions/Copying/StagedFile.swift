import CAlightLinux
import FileEvents
import Glibc
package import System

/// A file that has no final name yet, in the folder where it will have one.
///
/// Where the file system can, it has no name at all until it is complete, so that nothing is
/// left of it when the program dies. Else it has a hidden one, and a lock that tells
/// that it is somebody's; see ``Leftovers``.
///
/// Write to the descriptor, ``flush()``, then ``name()`` it and place that name; what
/// has not been placed is removed at the end.
package final class StagedFile {
    package let folder: OpenFolder
    /// The name that it is to have, for messages and for its temporary one.
    private let final: PathBytes
    private var file: OpenFile?
    private var temporary: PathBytes?

    /// Makes an empty file.
    ///
    /// - Parameters:
    ///   - folder: Where it is to stand.
    ///   - name: The name that it is to have.
    ///   - mode: Its mode, of which the umask takes away.
    /// - Throws: Why there can be none.
    package init(in folder: OpenFolder, for name: PathBytes, mode: UInt32 = 0o600) throws(FileFault) {
        self.folder = folder
        final = name
        let unnamed = cal_open_unnamed_in(folder.descriptor, mode)
        if unnamed >= 0 {
            TemporaryName.lock(unnamed)
            file = OpenFile(unnamed)
            return
        }
        var error: Int32 = EEXIST
        for _ in 0..<Self.mostTries where error == EEXIST {
            let temporary = TemporaryName.staged(name)
            let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
            let descriptor = temporary.withCString { openat(folder.descriptor, $0, flags, mode) }
            guard descriptor >= 0 else {
                error = errno
                continue
            }
            let opened = OpenFile(descriptor)
            // A cleaner was there between the two calls, and may remove it.
            guard TemporaryName.lock(descriptor), (try? opened.facts().links) ?? 0 > 0 else { continue }
            file = opened
            self.temporary = temporary
            return
        }
        throw FileFault(error, "cannot create '\(folder.path(of: name))'")
    }

    deinit { discard() }

    private static let mostTries = 100

    /// Open for reading and writing until it is placed.
    package var descriptor: Int32 { file?.descriptor ?? -1 }

    /// The number of its file system.
    var device: UInt64 {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? UInt64(status.st_dev) : 0
    }

    /// Puts its content on the disk.
    package func flush() throws(FileFault) {
        guard fsync(descriptor) == 0 else {
            throw FileFault(errno, "cannot flush the copy in '\(folder.path)'")
        }
    }

    /// Gives it a hidden name, if it has none, and closes it, since a file that is open for writing counts as unfinished.
    package func name() throws(FileFault) -> PathBytes {
        if let temporary {
            file = nil
            return temporary
        }
        var error: Int32 = EEXIST
        for _ in 0..<Self.mostTries where error == EEXIST {
            let name = TemporaryName.staged(final)
            error = name.withCString { cal_link_descriptor_in(descriptor, folder.descriptor, $0) }
            guard error == 0 else { continue }
            temporary = name
            file = nil
            return name
        }
        throw FileFault(error, "cannot create '\(folder.path(of: final))'")
    }

    /// Removes what has not been placed; to be deferred, so that it does not come too early.
    package func discard() {
        file = nil
        if let temporary { folder.unlink(temporary) }
        temporary = nil
    }
}

import CAlightLinux
import Glibc
import System

/// A file without a final name, in the directory where it will get one.
///
/// Where the file system supports it, the file has no name at all until it is complete, so that nothing is left of it
/// if the program is killed. Otherwise it has a hidden name, and a lock that marks it as in use; see ``Leftovers``.
///
/// Write to the descriptor, ``flush()``, then ``name()`` it and place that name. A file that has not been placed is
/// removed when the object is released.
final class StagedFile {
    let directory: DirectoryHandle
    /// The intended name, for messages and for the temporary name.
    private let final: PathBytes
    private var file: OpenFile?
    private var temporary: PathBytes?

    /// Creates an empty file.
    ///
    /// - Parameters:
    ///   - directory: The directory of the file.
    ///   - name: The intended name.
    ///   - mode: The mode, reduced by the umask.
    /// - Throws: A ``FileError`` if the file cannot be created.
    init(in directory: DirectoryHandle, for name: PathBytes, mode: UInt32) throws(FileError) {
        self.directory = directory
        final = name
        let unnamed = cal_open_unnamed_in(directory.descriptor, mode)
        if unnamed >= 0 {
            TemporaryName.lock(unnamed)
            file = OpenFile(unnamed)
            return
        }
        var error: Int32 = EEXIST
        for _ in 0..<Self.mostTries where error == EEXIST {
            let temporary = TemporaryName.staged(name)
            let descriptor = directory.create(temporary, O_RDWR, mode: mode)
            guard descriptor >= 0 else {
                error = errno
                continue
            }
            let opened = OpenFile(descriptor)
            // A cleanup ran between the two calls, and may remove the file.
            guard TemporaryName.lock(descriptor), (try? opened.metadata().links) ?? 0 > 0 else { continue }
            file = opened
            self.temporary = temporary
            return
        }
        throw FileError(error, "cannot create '\(directory.path(of: name))'")
    }

    deinit { discard() }

    private static let mostTries = 100

    /// The descriptor, open for reading and writing; -1 once the file has been named or discarded.
    var descriptor: Int32 { file?.descriptor ?? -1 }

    /// Returns the metadata of the file before it is named.
    func metadata() throws(FileError) -> Snapshot {
        guard let file else { preconditionFailure("it has been named") }
        return try file.metadata()
    }

    /// Flushes the content to the disk.
    func flush() throws(FileError) {
        guard fsync(descriptor) == 0 else { throw FileError(errno, "cannot flush the copy in '\(directory.path)'") }
    }

    /// Gives the file a hidden name if it has none, and closes it: a file that is open for writing counts as
    /// unfinished.
    func name() throws(FileError) -> PathBytes {
        if let temporary {
            file = nil
            return temporary
        }
        let name = TemporaryName.staged(final)
        let error = name.withCString { cal_link_descriptor_in(descriptor, directory.descriptor, $0) }
        guard error == 0 else { throw FileError(error, "cannot create '\(directory.path(of: final))'") }
        temporary = name
        file = nil
        return name
    }

    /// Marks the file as placed, so that it is not removed.
    func keep() { temporary = nil }

    /// Removes the file if it has not been placed; call it with `defer`, so that it does not run too early.
    func discard() {
        file = nil
        if let temporary { directory.unlink(temporary) }
        temporary = nil
    }
}

extension OpenFile {
    /// Opens another descriptor for a staged file.
    ///
    /// It is read-only, so the file does not count as unfinished while it is open.
    static func reading(_ staged: StagedFile) throws(FileError) -> OpenFile {
        let descriptor = PathBytes("/proc/self/fd/\(staged.descriptor)").withCString { open($0, O_RDONLY | O_CLOEXEC) }
        guard descriptor >= 0 else { throw FileError(errno, "cannot open the copy in '\(staged.directory.path)'") }
        let file = OpenFile(descriptor)
        TemporaryName.lock(descriptor)
        return file
    }
}

import CAlightLinux
import Glibc
import Rules
import System

/// A hidden directory beside its final location, which gets its name when it is complete, or is removed.
///
/// It is locked while it is open, which marks it as in use; see ``Leftovers``.
final class StagedDirectory {
    private let directory: DirectoryHandle
    private let name: PathBytes
    /// The directory, to inspect its entries.
    let content: DirectoryHandle
    /// The umask, which can be determined only by creating something.
    let mask: UInt32

    /// - Parameters:
    ///   - directory: The parent directory.
    ///   - final: The intended name.
    /// - Throws: A ``FileError`` if the directory cannot be created.
    init(in directory: DirectoryHandle, for final: PathBytes) throws(FileError) {
        (self.directory, name) = (directory, TemporaryName.staged(final))
        let path = directory.path(of: name)
        let error = directory.makeDirectory(name, mode: 0o700)
        guard error == 0 else { throw FileError(error, "cannot create '\(path)'") }
        content = DirectoryHandle(try directory.opened(name, CAL_OPEN_READING), path)
        guard TemporaryName.lock(content.descriptor) else { throw FileError(EAGAIN, "cannot lock '\(path)'") }
        _ = content.makeDirectory("mask", mode: 0o777)
        mask = (try? content.metadata(of: "mask")).map { ~UInt32($0.mode) & 0o777 } ?? 0o022
        content.removeDirectory("mask")
    }

    deinit {
        // After publishing, the hidden name is gone, or belongs to the file that was exchanged for this directory.
        if (try? directory.metadata(of: name)) != nil { _ = DirectoryRemoval.remove(name, in: directory) { false } }
    }

    /// Marks the end of the work on the content.
    ///
    /// - Returns: A time by the file system's clock. Nothing in the directory has changed after it so far, and later
    ///   changes have a later time. If the clock is too coarse for that, a time before all others.
    /// - Throws: A ``FileError`` if a system call fails.
    func seal() throws(FileError) -> Timestamp {
        let sealed = try tick()
        for _ in 0..<50 {
            if try tick() > sealed { return sealed }
            usleep(1_000)
        }
        return Timestamp(seconds: 0, nanoseconds: 0)
    }

    /// Returns the current time by the file system's clock.
    private func tick() throws(FileError) -> Timestamp {
        guard fchmod(content.descriptor, mode_t(try content.file.metadata().mode)) == 0 else {
            throw FileError(errno, "cannot change the mode of '\(content.path)'")
        }
        return try content.file.metadata().changed
    }

    /// Gives the directory its final name according to `on_conflict`; returns nil if it is skipped.
    func publish(to location: FileLocation) throws(FileError) -> PathBytes? {
        if location.conflict == .overwrite {
            let error = directory.rename(name, to: directory, location.name, CAL_RENAME_EXCHANGING)
            if error == 0 {
                // The replaced file now has the hidden name, and is removed with it.
                try location.record(location.name) { .overwritten($0) }
                return location.name
            }
            guard error == ENOENT else { throw FileError(error, "cannot exchange '\(location.path)'") }
        }
        switch try location.location(name) {
        case .placed(let name), .duplicate(let name): return name
        case .skipped: return nil
        }
    }
}

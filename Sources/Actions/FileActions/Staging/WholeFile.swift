import CAlightLinux
import Glibc
import System

/// Reading and writing of whole files.
enum WholeFile {
    /// Replaces a file atomically.
    ///
    /// - Parameters:
    ///   - name: The name of the file.
    ///   - directory: The directory of the file.
    ///   - bytes: The new content.
    /// - Throws: A ``FileError`` if a system call fails; the old file then remains.
    static func replace(
        _ name: PathBytes, in directory: DirectoryHandle, with bytes: [UInt8]
    ) throws(FileError) {
        let staged = try StagedFile(in: directory, for: name, mode: 0o666)
        // Users who could read the old file can read the new one.
        if let old = try directory.metadata(of: name), old.type == .file {
            fchmod(staged.descriptor, mode_t(old.mode & 0o777))
        }
        let writeError = bytes.withUnsafeBytes { FileIO.write($0, to: staged.descriptor, at: 0) }
        guard writeError == 0 else { throw FileError(writeError, "cannot write to '\(directory.path(of: name))'") }
        try staged.flush()
        let temporary = try staged.name()
        let error = directory.rename(temporary, to: directory, name, CAL_RENAME_REPLACING)
        guard error == 0 else { throw FileError(error, "cannot rename to '\(directory.path(of: name))'") }
        directory.flush()
    }

    /// Returns the content of a file; nil if it does not exist.
    ///
    /// - Throws: A ``FileError`` if the file cannot be read, is not a regular file, or is larger than `most`.
    static func content(of name: PathBytes, in directory: DirectoryHandle, most: Int) throws(FileError) -> [UInt8]? {
        let path = directory.path(of: name)
        let file: OpenFile
        do throws(FileError) {
            file = try directory.opened(name, CAL_OPEN_READING)
        } catch {
            if error.errno == ENOENT { return nil }
            throw error
        }
        guard try file.metadata().type == .file else { throw FileError(EINVAL, "'\(path)' is not a regular file") }
        guard let bytes = ProcFile.bytes(of: file.descriptor, limit: most) else {
            throw FileError(errno, "cannot read '\(path)'")
        }
        guard bytes.count <= most else { throw FileError(EFBIG, "cannot read '\(path)'") }
        return bytes
    }
}

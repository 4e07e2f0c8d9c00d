package import System

// Errors of these calls end the work on a file, with a message.
extension OpenFile {
    /// Returns the metadata of the open file.
    package func facts() throws(FileError) -> Snapshot {
        do throws(SystemError) {
            return try snapshot()
        } catch {
            throw FileError(error.errno, "cannot stat an open file")
        }
    }
}

extension DirectoryHandle {
    /// Returns the metadata of a name, of a symbolic link itself; nil if there is nothing of that name.
    package func look(at name: PathBytes) throws(FileError) -> Snapshot? {
        do throws(SystemError) {
            return try stat(name)
        } catch {
            throw FileError(error.errno, "cannot stat '\(path(of: name))'")
        }
    }

    /// Returns the names in the directory, without `.` and `..`.
    package func names() throws(FileError) -> [PathBytes] {
        do throws(SystemError) {
            return try DiskProbe.names(in: descriptor)
        } catch {
            throw FileError(error.errno, "cannot list '\(path)'")
        }
    }
}

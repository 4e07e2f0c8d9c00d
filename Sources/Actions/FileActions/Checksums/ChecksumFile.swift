import Glibc
import System

/// The list of a directory: a file with the checksums of other files.
struct ChecksumFile {
    let directory: DirectoryHandle
    let kind: Checksum

    init(listIn directory: DirectoryHandle, _ kind: Checksum) { (self.directory, self.kind) = (directory, kind) }

    /// A file name with its checksum; nil removes the name.
    typealias Sum = (name: PathBytes, digits: String?)

    /// The maximum size in bytes; a larger file is not a checksum file.
    private static let most = 64 << 20

    private var name: PathBytes { PathBytes(kind.listName) }
    var path: PathBytes { directory.path(of: name) }

    /// Returns the lines of the file; nil if it does not exist.
    func lines() throws(FileError) -> ChecksumLines? {
        try WholeFile.content(of: name, in: directory, most: Self.most).map { ChecksumLines($0, kind) }
    }

    enum Update {
        case written
        case same
        /// Another process locked the directory until Alight stopped or the timeout expired.
        case waited
    }

    /// Updates checksums in the file, safely even if others do so at the same time; the file is replaced as a whole.
    ///
    /// - Parameters:
    ///   - sums: The changes.
    ///   - isOver: Called while waiting for other processes; true stops the wait.
    /// - Returns: Whether the file was written.
    /// - Throws: A ``FileError`` if a system call fails.
    func update(_ sums: [Sum], isOver: () -> Bool) throws(FileError) -> Update {
        // The lock belongs to this open descriptor, so it works between threads as well as between processes.
        let lock = openat(directory.descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard lock >= 0 else { throw FileError(errno, "cannot open '\(directory.path)'") }
        defer { close(lock) }
        // Any other error: a file system without locks, whose directory is assumed not to be shared.
        if FileLock.acquire(lock, pause: 2_000, while: { !isOver() }) == EWOULDBLOCK { return .waited }
        let before = try WholeFile.content(of: name, in: directory, most: Self.most)
        var lines = ChecksumLines(before ?? [], kind)
        for sum in sums { lines.sums[sum.name] = sum.digits }
        let text = lines.text
        if text == before ?? [] { return .same }
        try WholeFile.replace(name, in: directory, with: text)
        return .written
    }
}

import FileEvents
import Glibc
import System

/// A file with the checksums of others, a sidecar or the list of a folder.
struct ChecksumFile {
    let folder: OpenFolder
    let name: PathBytes
    let kind: Checksum

    /// A longer one is none.
    private static let most = 64 << 20

    var path: PathBytes { folder.path(of: name) }

    /// Nil when there is none.
    func lines() throws(FileFault) -> ChecksumLines? {
        try WholeFile.content(of: name, in: folder, most: Self.most).map { ChecksumLines($0, kind) }
    }

    enum Update {
        case written
        case same
        /// Another process has the folder for itself, and meanwhile Alight stops, or the time is over.
        case waited
    }

    /// Changes sums in it, however many do so at once; the file is replaced as a whole.
    ///
    /// - Parameters:
    ///   - sums: The names of files, and their sums; nil takes one out.
    ///   - isAlone: Whether nothing else may be in it.
    ///   - isOver: Asked while it waits for others.
    /// - Returns: Whether it was written.
    /// - Throws: What failed.
    func update(
        _ sums: [(name: PathBytes, digits: String?)], isAlone: Bool = false, isOver: () -> Bool
    ) throws(FileFault) -> Update {
        // The lock is the open folder's, so it holds between threads as well as between processes.
        let lock = openat(folder.descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard lock >= 0 else { throw FileFault(errno, "cannot open '\(folder.path)'") }
        defer { close(lock) }
        while flock(lock, LOCK_EX | LOCK_NB) != 0 {
            // A file system without locks: its folder is not shared with others, as far as we know.
            guard errno == EWOULDBLOCK || errno == EINTR else { break }
            if isOver() { return .waited }
            var pause = timespec(tv_sec: 0, tv_nsec: 2_000_000)
            nanosleep(&pause, nil)
        }
        let before = try WholeFile.content(of: name, in: folder, most: Self.most)
        var lines = ChecksumLines(isAlone ? [] : before ?? [], kind)
        for sum in sums { lines.set(sum.digits, for: sum.name) }
        let text = lines.text
        if text == before ?? [] { return .same }
        try WholeFile.replace(name, in: folder, with: text)
        return .written
    }
}

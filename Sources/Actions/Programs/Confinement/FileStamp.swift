import FileEvents
import Glibc
import System

/// What changes when a file does, or another one takes its name.
struct FileStamp: Sendable, Hashable {
    private let numbers: [Int]

    /// Nil when there is none.
    init?(_ path: PathBytes) {
        var status = stat()
        guard path.withCString({ stat($0, &status) }) == 0 else { return nil }
        numbers = [
            Int(truncatingIfNeeded: status.st_dev), Int(truncatingIfNeeded: status.st_ino), Int(status.st_size),
            status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
            // A content that is put in place with the time of the old one, as `cp -p` does, shows here alone.
            status.st_ctim.tv_sec, status.st_ctim.tv_nsec,
        ]
    }
}

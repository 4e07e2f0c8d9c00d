import Glibc

/// The metadata that changes when a file is modified or replaced.
package struct FileStamp: Sendable, Hashable {
    private let numbers: [Int]

    /// Reads the stamp of a file; nil when there is none.
    package init?(_ path: PathBytes) {
        var status = stat()
        guard path.withCString({ stat($0, &status) }) == 0 else { return nil }
        numbers = [
            Int(truncatingIfNeeded: status.st_dev), Int(truncatingIfNeeded: status.st_ino), Int(status.st_size),
            status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
            // Only this shows new content that has the modification time of the old one, as after `cp -p`.
            status.st_ctim.tv_sec, status.st_ctim.tv_nsec,
        ]
    }
}

package import FileEvents
package import System

extension Snapshot {
    /// The metadata of a regular file that need not exist.
    ///
    /// Snapshots with equal `file` numbers are of the same file.
    package static func sample(
        file: UInt64 = 1, size: UInt64 = 5, modified: Int64 = 1_000, type: FileType = .file, mode: UInt16 = 0o644
    ) -> Snapshot {
        Snapshot(
            identity: FileIdentity(deviceMajor: 8, deviceMinor: 1, inode: file, birth: Int64(file) * 1_000_000_000),
            type: type, size: size, modified: Timestamp(seconds: modified, nanoseconds: 0),
            changed: Timestamp(seconds: modified, nanoseconds: 0),
            born: Timestamp(seconds: Int64(file), nanoseconds: 0), mode: mode, uid: 0, gid: 0, links: 1)
    }
}

extension FileEvent {
    /// An event for a file that need not exist.
    package static func sample(
        _ kind: EventKind = .created, _ path: PathBytes = "/in/a.txt", root: PathBytes = "/in",
        from: PathBytes? = nil, _ snapshot: Snapshot = .sample(), before: Snapshot? = nil
    ) -> FileEvent {
        FileEvent(
            kind: kind, path: path, root: root, from: from, snapshot: snapshot, before: before,
            time: Timestamp(seconds: 2_000, nanoseconds: 0))
    }
}

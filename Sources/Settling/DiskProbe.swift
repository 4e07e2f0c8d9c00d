import CAlightLinux
package import FileEvents
import Glibc

/// Asks the disk about one path.
///
/// The only part of this target that touches the world.
///
/// All calls block for as long as the file system does.
package enum DiskProbe {
    package enum Sight: Sendable, Hashable {
        case present(Snapshot)
        /// There is nothing of that name.
        case absent
        /// The file system can't say; this is never a deletion.
        case unreadable(errno: Int32)
    }

    /// What is at the path now, without following a final symbolic link.
    package static func look(at path: PathBytes) -> Sight {
        var status = cal_stat()
        let error = path.withCString { cal_stat_path($0, &status) }
        switch error {
        case 0: return .present(Snapshot(status))
        case ENOENT, ENOTDIR: return .absent
        // A folder of a name that the file system can't hold: there is nothing there.
        case ENAMETOOLONG: return .absent
        default: return .unreadable(errno: error)
        }
    }

    package enum Writers: Sendable, Hashable {
        /// Nobody has the file open for writing, or mapped writable.
        case nobody
        case somebody
        /// The question has no answer here: another user's file, or a file system without leases.
        case unknown
    }

    /// Whether a process can still write to the regular file, by the read lease of fcntl(2).
    ///
    /// The lease is dropped at once. A writer that opens in these microseconds waits for them.
    package static func writers(of path: PathBytes) -> Writers {
        switch path.withCString({ cal_probe_writers($0) }) {
        case 0: .nobody
        case EAGAIN: .somebody
        default: .unknown
        }
    }

    /// The system clock.
    package static func now() -> Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(seconds: Int64(time.tv_sec), nanoseconds: UInt32(time.tv_nsec))
    }
}

extension Snapshot {
    fileprivate init(_ status: cal_stat) {
        let type: FileType =
            switch status.mode & UInt32(S_IFMT) {
            case UInt32(S_IFREG): .file
            case UInt32(S_IFDIR): .directory
            case UInt32(S_IFLNK): .symlink
            default: .other
            }
        let born = Timestamp(seconds: status.btime_seconds, nanoseconds: status.btime_nanoseconds)
        self.init(
            identity: FileIdentity(
                deviceMajor: status.device_major, deviceMinor: status.device_minor, inode: status.inode,
                birth: status.has_btime == 0 ? 0 : born.seconds &* 1_000_000_000 &+ Int64(born.nanoseconds)),
            type: type, size: status.size,
            modified: Timestamp(seconds: status.mtime_seconds, nanoseconds: status.mtime_nanoseconds),
            changed: Timestamp(seconds: status.ctime_seconds, nanoseconds: status.ctime_nanoseconds),
            born: status.has_btime == 0 ? nil : born, mode: UInt16(status.mode & 0o7777), uid: status.uid,
            gid: status.gid, links: status.nlink)
    }
}

import CAlightLinux
import Glibc

/// The questions to a ``FileSystem`` about one path, with their answers, and the clocks that stamp files.
package enum DiskProbe {
    /// A name in an open directory, or a path by itself.
    package struct Location: Sendable {
        package let directory: OpenFile?
        package let name: PathBytes

        package init(_ directory: OpenFile, _ name: PathBytes) {
            self.directory = directory
            self.name = name
        }

        /// Creates the location of a path that is not a watched path.
        package init(_ path: PathBytes) {
            directory = nil
            name = path
        }

        var descriptor: Int32 { directory?.descriptor ?? AT_FDCWD }

        /// Opens a regular file for reading, without following a link or waiting for a pipe.
        ///
        /// Returns the descriptor or a negative errno.
        package func openForReading() -> Int32 { name.withCString { cal_open_entry(descriptor, $0, CAL_OPEN_READING) } }
    }

    package enum StatResult: Sendable, Hashable {
        case present(Snapshot)
        /// The path does not exist.
        case absent
        /// The file system returned an error; this is never treated as a deletion.
        case unreadable(errno: Int32)

        /// The metadata; nil if the path does not exist or cannot be read.
        package var snapshot: Snapshot? { if case .present(let snapshot) = self { snapshot } else { nil } }

        /// Creates the result for an error of stat(2).
        package init(errno: Int32) {
            switch errno {
            // ENAMETOOLONG: the file system cannot store a name of this length, so nothing exists there.
            case ENOENT, ENOTDIR, ENAMETOOLONG: self = .absent
            default: self = .unreadable(errno: errno)
            }
        }

        /// Creates the result for a path in a directory that cannot be opened: absent also behind a link.
        package init(directory errno: Int32) {
            self = errno == ELOOP || errno == EXDEV ? .absent : StatResult(errno: errno)
        }
    }

    /// The result of a check for processes that have a file open for writing, or locked against writing.
    package enum Holders: Sendable, Hashable {
        case free
        case held
        /// The check is not possible: the file belongs to another user, or the file system does not support it.
        case unknown

        /// Creates the result of a check that returns 0, EAGAIN if a process holds the file, or another errno.
        init(probe errno: Int32) { self = errno == 0 ? .free : errno == EAGAIN ? .held : .unknown }
    }

    /// Whether the kernel grants this process leases on files of other users: it has CAP_LEASE, see capabilities(7).
    package static var mayLeaseAnyFile: Bool { cal_may_lease_any_file() != 0 }

    /// Returns the time of the system clock.
    package static func now() -> Timestamp { time(CLOCK_REALTIME) }

    /// Returns the time since boot, including the time in suspend.
    package static func sinceBoot() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    /// Returns the timestamp that a file would get if it changed now.
    ///
    /// The kernel stamps files with the system clock of its last tick, some milliseconds before ``now()``. Changes from
    /// now on never get an earlier timestamp than this. A file with exactly this timestamp may also have changed
    /// before.
    package static func fileTime() -> Timestamp { time(CLOCK_REALTIME_COARSE) }

    private static func time(_ clock: clockid_t) -> Timestamp {
        var time = timespec()
        clock_gettime(clock, &time)
        return Timestamp(seconds: Int64(time.tv_sec), nanoseconds: UInt32(time.tv_nsec))
    }
}

package import CAlightLinux
import Glibc

/// Queries the disk about one path.
///
/// All calls block for as long as the file system does.
package enum DiskProbe {
    package enum StatResult: Sendable, Hashable {
        case present(Snapshot)
        /// The path does not exist.
        case absent
        /// The file system returned an error; this is never treated as a deletion.
        case unreadable(errno: Int32)

        /// The metadata; nil if the path does not exist or cannot be read.
        package var snapshot: Snapshot? { if case .present(let snapshot) = self { snapshot } else { nil } }
    }

    /// The metadata to read in addition to the result of one system call.
    package struct Extras: OptionSet, Sendable, Hashable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// The extended attributes: one more call, and one for each attribute.
        package static let extended = Extras(rawValue: 1 << 0)
    }

    /// Returns the metadata of the path now, without following a final symbolic link.
    package static func inspect(at path: PathBytes, reading extras: Extras = []) -> StatResult {
        inspect(at: Location(path), reading: extras)
    }

    package static func inspect(at location: Location, reading extras: Extras = []) -> StatResult {
        var status = cal_stat()
        let error: Int32
        var extended: [ExtendedAttribute]?
        if extras.contains(.extended) {
            // All calls use one open file, even if the name is replaced in between.
            let entry = location.name.withCString { cal_open_entry(location.descriptor, $0, CAL_OPEN_ENTRY) }
            error = entry >= 0 ? cal_stat_descriptor(entry, &status) : -entry
            if error == 0 { extended = extendedAttributes(of: entry) }
            if entry >= 0 { close(entry) }
        } else {
            error = location.name.withCString { cal_stat_entry(location.descriptor, $0, 0, &status) }
        }
        switch error {
        case 0:
            var snapshot = Snapshot(status)
            snapshot.extended = extended
            return .present(snapshot)
        // ENAMETOOLONG: the file system cannot store a name of this length, so nothing exists there.
        case ENOENT, ENOTDIR, ENAMETOOLONG: return .absent
        default: return .unreadable(errno: error)
        }
    }

    /// Returns the identity of the file at the path; nil if there is none, or it cannot be read.
    package static func identity(of path: PathBytes) -> FileIdentity? {
        inspect(at: path).snapshot?.identity
    }

    /// Returns the path without symbolic links; nil if it does not exist.
    package static func resolve(_ path: PathBytes) -> PathBytes? {
        guard let resolved = path.withCString({ realpath($0, nil) }) else { return nil }
        defer { free(resolved) }
        return PathBytes(UnsafeRawBufferPointer(start: resolved, count: strlen(resolved)))
    }

    /// Returns the target of a symbolic link, as it is stored; nil for any other path.
    package static func target(of link: PathBytes) -> PathBytes? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { buffer in
            guard let base = buffer.baseAddress else { return nil }
            let count = link.withCString { readlink($0, base, buffer.count) }
            guard count > 0, count < buffer.count else { return nil }
            return PathBytes(UnsafeRawBufferPointer(start: base, count: count))
        }
    }

    /// The result of a check for processes that have a file open for writing, or locked against writing.
    package enum Holders: Sendable, Hashable {
        case nobody
        case somebody
        /// The check is not possible: the file belongs to another user, or the file system does not support it.
        case unknown
    }

    /// Checks whether a process can still write to the regular file: has it open for writing, or mapped writable.
    ///
    /// The check acquires a read lease of fcntl(2), and releases it at once. A writer that opens the file in these
    /// microseconds waits for the release. For a file of another user, where the kernel grants no lease, the check
    /// searches the open files of all processes that may be inspected. A writer that is found is certain; if none is
    /// found, there may still be one.
    package static func writers(of path: PathBytes) -> Holders { writers(of: Location(path)) }

    static func writers(of location: Location) -> Holders {
        switch location.name.withCString({ cal_probe_entry_writers(location.descriptor, $0) }) {
        case 0: return .nobody
        case EAGAIN: return .somebody
        case EACCES:
            var status = cal_stat()
            let isKnown = location.name.withCString { cal_stat_entry(location.descriptor, $0, 0, &status) } == 0
            return isKnown && WriterSearch.hasFound(FileIdentity(status).withoutBirth) ? .somebody : .unknown
        default: return .unknown
        }
    }

    /// Whether the kernel grants this process leases on files of other users: it has CAP_LEASE, see capabilities(7).
    package static var mayLeaseAnyFile: Bool { cal_may_lease_any_file() != 0 }

    /// Checks whether a process holds a write lock on the regular file, by flock(2) or fcntl(2).
    ///
    /// The check holds a shared flock(2) lock for some microseconds. During that time, another process that requests
    /// its lock without waiting is refused.
    package static func locks(of location: Location) -> Holders {
        switch location.name.withCString({ cal_probe_locks(location.descriptor, $0) }) {
        case 0: .nobody
        case EAGAIN: .somebody
        default: .unknown
        }
    }

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

    // The kernel's limits, XATTR_LIST_MAX and XATTR_SIZE_MAX: no list and no value is longer.
    private static let attributeBound = 65_536

    /// Returns the extended attributes, sorted by name; nil if any of them cannot be read.
    ///
    /// An attribute that became unreadable by a change of the mode is not known to be removed, which a partial list
    /// would claim.
    private static func extendedAttributes(of entry: Int32) -> [ExtendedAttribute]? {
        let length = cal_list_open_attributes(entry, nil, 0)
        if length == 0 { return [] }
        guard length > 0 else { return nil }
        return withUnsafeTemporaryAllocation(byteCount: attributeBound, alignment: 1) { buffer in
            let listed = cal_list_open_attributes(
                entry, buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count)
            guard listed >= 0 else { return nil }
            let names = Array(buffer[..<Int(listed)]).split(separator: 0).map { PathBytes($0) }
            var attributes: [ExtendedAttribute] = []
            for name in names.sorted() {
                let length = name.withCString { cal_read_open_attribute(entry, $0, buffer.baseAddress, buffer.count) }
                // The attribute was removed after it was listed.
                if length == -Int64(ENODATA) { continue }
                guard length >= 0 else { return nil }
                attributes.append(ExtendedAttribute(name: name, value: Array(buffer[..<Int(length)])))
            }
            return attributes
        }
    }
}

extension FileIdentity {
    /// Creates the identity from the result of statx(2).
    package init(_ status: cal_stat) {
        let birth = status.btime_seconds &* 1_000_000_000 &+ Int64(status.btime_nanoseconds)
        self.init(
            deviceMajor: status.device_major, deviceMinor: status.device_minor, inode: status.inode,
            birth: status.has_btime == 0 ? 0 : birth)
    }
}

extension Snapshot {
    /// Creates a snapshot from the result of statx(2).
    package init(_ status: cal_stat) {
        let type: FileType =
            switch status.mode & UInt32(S_IFMT) {
            case UInt32(S_IFREG): .file
            case UInt32(S_IFDIR): .directory
            case UInt32(S_IFLNK): .symlink
            default: .other
            }
        let born = Timestamp(seconds: status.btime_seconds, nanoseconds: status.btime_nanoseconds)
        self.init(
            identity: FileIdentity(status), type: type, size: status.size,
            modified: Timestamp(seconds: status.mtime_seconds, nanoseconds: status.mtime_nanoseconds),
            changed: Timestamp(seconds: status.ctime_seconds, nanoseconds: status.ctime_nanoseconds),
            born: status.has_btime == 0 ? nil : born, mode: UInt16(status.mode & 0o7777), uid: status.uid,
            gid: status.gid, links: status.nlink, mount: status.mount)
    }
}

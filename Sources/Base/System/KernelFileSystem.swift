import CAlightLinux
import Glibc

/// The file system of the kernel.
package struct KernelFileSystem: FileSystem {
    package init() {}

    package func open(root: PathBytes) throws(SystemError) -> OpenFile {
        try OpenFile(opened: root.withCString { cal_open_root($0) })
    }

    package func open(_ path: PathBytes, beneath directory: OpenFile) throws(SystemError) -> OpenFile {
        try OpenFile(opened: path.withCString { cal_open_beneath(directory.descriptor, $0, CAL_OPEN_DIRECTORY, 0) })
    }

    package func stat(_ location: DiskProbe.Location, readingExtended: Bool) -> DiskProbe.StatResult {
        location.name.withCString { Self.stat(location.descriptor, $0, readingExtended: readingExtended) }
    }

    /// Returns the metadata of a name; extended attributes only without following a link.
    static func stat(
        _ directory: Int32, _ name: UnsafePointer<CChar>, following: Bool = false, readingExtended: Bool
    ) -> DiskProbe.StatResult {
        var status = cal_stat()
        let error: Int32
        var extended: [ExtendedAttribute]?
        if !readingExtended || cal_has_no_attributes(directory, name) != 0 {
            error = cal_stat_entry(directory, name, following ? 1 : 0, &status)
            if readingExtended { extended = [] }
        } else {
            // All calls use one open file, even if the name is replaced in between.
            let entry = cal_open_entry(directory, name, CAL_OPEN_ENTRY)
            error = entry >= 0 ? cal_stat_descriptor(entry, &status) : -entry
            if error == 0 { extended = Self.extendedAttributes(of: entry) }
            if entry >= 0 { close(entry) }
        }
        guard error == 0 else { return DiskProbe.StatResult(errno: error) }
        var snapshot = Snapshot(status)
        snapshot.extended = extended
        return .present(snapshot)
    }

    package func names(in location: DiskProbe.Location) throws(SystemError) -> [PathBytes] {
        try Self.names(opened: location.name.withCString { cal_open_directory(location.descriptor, $0) })
    }

    /// The check acquires a read lease of fcntl(2), and releases it at once.
    ///
    /// A writer that opens the file in these microseconds waits for the release. For a file of another user, where the
    /// kernel grants no lease, the check searches the open files of all processes that may be inspected. A writer that
    /// is found is certain; if none is found, there may still be one.
    package func writers(of location: DiskProbe.Location) -> DiskProbe.Holders {
        let error = location.name.withCString { cal_probe_entry_writers(location.descriptor, $0) }
        guard error == EACCES, let snapshot = stat(location).snapshot else { return DiskProbe.Holders(probe: error) }
        return WriterSearch.hasFound(snapshot.identity.withoutBirth) ? .held : .unknown
    }

    /// The check holds a shared flock(2) lock for some microseconds.
    ///
    /// During that time, another process that requests its lock without waiting is refused.
    package func locks(of location: DiskProbe.Location) -> DiskProbe.Holders {
        DiskProbe.Holders(probe: location.name.withCString { cal_probe_locks(location.descriptor, $0) })
    }

    package func isOnOverlay(_ location: DiskProbe.Location) -> Bool {
        var type: UInt64 = 0
        return cal_file_system(location.descriptor, &type) == 0 && type == 0x794C_7630
    }

    package func read(_ location: DiskProbe.Location, inode: UInt64, from offset: UInt64, count: Int) -> [UInt8] {
        let descriptor = location.openForReading()
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        var status = Glibc.stat()
        guard fstat(descriptor, &status) == 0, UInt64(status.st_ino) == inode else { return [] }
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                let end = buffer.baseAddress?.advanced(by: filled)
                let got = pread(descriptor, end, count - filled, off_t(offset) + off_t(filled))
                if got < 0, errno == EINTR { continue }
                guard got > 0 else { break }
                filled += got
            }
        }
    }

    package func resolve(_ path: PathBytes) -> PathBytes? {
        guard let resolved = path.withCString({ realpath($0, nil) }) else { return nil }
        defer { free(resolved) }
        return PathBytes(UnsafeRawBufferPointer(start: resolved, count: strlen(resolved)))
    }

    package func makeDirectory(_ path: PathBytes) -> Int32 {
        var missing = [path]
        while let directory = missing.last {
            if directory.withCString({ mkdir($0, 0o777) }) == 0 || errno == EEXIST {
                missing.removeLast()
                continue
            }
            guard errno == ENOENT, directory.parent != directory else { return errno }
            missing.append(directory.parent)
        }
        return exists(path) ? 0 : ENOENT
    }

    package var mountPoints: Set<PathBytes> { MountTable.points }

    package func isMounted(_ mount: UInt64) -> Bool { MountTable.isMounted(mount) }
}

extension KernelFileSystem {
    /// Returns the target of a symbolic link, as it is stored; nil for any other path.
    package func target(of link: PathBytes) -> PathBytes? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { buffer in
            guard let base = buffer.baseAddress else { return nil }
            let count = link.withCString { readlink($0, base, buffer.count) }
            guard count > 0, count < buffer.count else { return nil }
            return PathBytes(UnsafeRawBufferPointer(start: base, count: count))
        }
    }

    /// Returns the metadata of the path, following links.
    package func stat(following path: PathBytes) -> DiskProbe.StatResult {
        path.withCString { Self.stat(AT_FDCWD, $0, following: true, readingExtended: false) }
    }

    /// Returns the names in a directory, following links; in an open directory if the path is relative to it.
    package func names(
        following path: PathBytes, in directory: Int32 = AT_FDCWD
    ) throws(SystemError) -> [PathBytes] {
        let opened = path.withCString { openat(directory, $0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        return try Self.names(opened: opened >= 0 ? opened : -errno)
    }

    private static func names(opened descriptor: Int32) throws(SystemError) -> [PathBytes] {
        var names: [PathBytes] = []
        try DirectoryReader(opened: descriptor).forEach { names.append(PathBytes($0.name)) }
        return names
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

extension Snapshot {
    /// Creates a snapshot from the result of statx(2).
    init(_ status: cal_stat) {
        let type: FileType =
            switch status.mode & UInt32(S_IFMT) {
            case UInt32(S_IFREG): .file
            case UInt32(S_IFDIR): .directory
            case UInt32(S_IFLNK): .symlink
            default: .other
            }
        let birth = Timestamp(seconds: status.btime_seconds, nanoseconds: status.btime_nanoseconds)
        let born = status.has_btime == 0 ? nil : birth
        self.init(
            identity: FileIdentity(
                deviceMajor: status.device_major, deviceMinor: status.device_minor, inode: status.inode,
                birth: born?.wholeNanoseconds ?? 0), type: type, size: status.size,
            modified: Timestamp(seconds: status.mtime_seconds, nanoseconds: status.mtime_nanoseconds),
            changed: Timestamp(seconds: status.ctime_seconds, nanoseconds: status.ctime_nanoseconds),
            born: born, mode: UInt16(status.mode & 0o7777), uid: status.uid, gid: status.gid, links: status.nlink,
            mount: status.mount)
    }
}

extension PathBytes {
    /// The current directory of the process; `/` if it was removed.
    package static var current: PathBytes { KernelFileSystem().resolve(".") ?? "/" }
}

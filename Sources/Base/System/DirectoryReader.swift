package import CAlightLinux
import Glibc

/// An open directory that is listed in chunks, without `.` and `..`, in the order of the file system.
///
/// The owner closes it. Only one is open at a time, at any depth of the tree.
package struct DirectoryReader {
    /// One entry; its name is valid only until the next read into the buffer.
    package struct Entry {
        package var name: UnsafeRawBufferPointer
        /// `DT_…` of readdir(3), if the file system provides it.
        package var kind: UInt8
    }

    package let descriptor: Int32
    /// The device of the directory.
    package let device: UInt64

    /// Opens a directory without following a link below the root.
    ///
    /// - Parameters:
    ///   - path: The directory.
    ///   - root: The root that contains it, or the directory itself; links in the path of the root are followed.
    ///   - opened: The open root; nil to open it.
    /// - Throws: The error of opening it; `EXDEV` for a path that is not inside the root.
    package init(_ path: PathBytes, below root: PathBytes, opened: OpenFile? = nil) throws(SystemError) {
        guard let relative = path.relative(to: root) else { throw SystemError(errno: EXDEV) }
        let top = if let opened { opened } else { try KernelFileSystem().open(root: root) }
        var device: UInt64 = 0
        let listing = PathBytes(relative).withCString { cal_open_listing(top.descriptor, $0, &device) }
        try self.init(opened: listing, device: device)
    }

    /// Takes ownership of a directory that was opened for listing; the argument is negative if opening failed with that
    /// errno.
    init(opened descriptor: Int32, device: UInt64 = 0) throws(SystemError) {
        guard descriptor >= 0 else { throw SystemError(errno: -descriptor) }
        self.descriptor = descriptor
        self.device = device
    }

    /// Restarts at the first entry, including entries added since the directory was opened.
    ///
    /// btrfs lists none of them otherwise, and entries added before the directory had its watch produce no event.
    package func rewind() { _ = lseek(descriptor, 0, SEEK_SET) }

    /// Reads the next chunk and calls the closure for each entry.
    ///
    /// - Parameters:
    ///   - buffer: The buffer that the kernel writes the chunk to.
    ///   - body: The closure. Its entry must not be stored.
    /// - Returns: A positive number if there may be more, 0 at the end, or a negative errno.
    package func next(into buffer: UnsafeMutableRawBufferPointer, _ body: (Entry) -> Void) -> Int64 {
        guard let base = buffer.baseAddress else { return Int64(-EINVAL) }
        let count = cal_read_entries(descriptor, base, buffer.count)
        guard count > 0 else { return count }
        // struct linux_dirent64: d_ino, d_off, d_reclen, d_type, d_name.
        let (length, kind, name) = (16, 18, 19)
        var offset = 0
        while offset + name < Int(count) {
            let record = UnsafeRawPointer(base) + offset
            offset += Int(record.loadUnaligned(fromByteOffset: length, as: UInt16.self))
            let start = record + name
            let bytes = UnsafeRawBufferPointer(start: start, count: strlen(start.assumingMemoryBound(to: CChar.self)))
            // The directory itself and its parent.
            if bytes.count <= 2, bytes.allSatisfy({ $0 == .dot }) { continue }
            body(Entry(name: bytes, kind: record.load(fromByteOffset: kind, as: UInt8.self)))
        }
        return count
    }

    /// Calls the closure for each remaining entry; it must not store the entry.
    ///
    /// - Throws: The error that stopped the listing.
    package func forEach(_ body: (Entry) -> Void) throws(SystemError) {
        let result = withUnsafeTemporaryAllocation(byteCount: 32 << 10, alignment: 8) { buffer in
            while true {
                let count = next(into: buffer, body)
                if count <= 0 { return count }
            }
        }
        // ENOENT: the directory was removed, so it has no more entries.
        if result < 0, result != -Int64(ENOENT) { throw SystemError(errno: Int32(-result)) }
    }

    /// Whether an entry is a directory; a symbolic link to one is not.
    package func isDirectory(_ entry: Entry) -> Bool {
        if entry.kind != UInt8(DT_UNKNOWN) { return entry.kind == UInt8(DT_DIR) }
        var status = cal_stat()
        return inspect(at: entry, &status) == 0 && status.mode & UInt32(S_IFMT) == UInt32(S_IFDIR)
    }

    /// Reads the metadata of an entry, or of the target of a symbolic link.
    ///
    /// Returns 0 or the errno.
    package func inspect(at entry: Entry, following: Bool = false, _ status: inout cal_stat) -> Int32 {
        // The kernel terminates each name with a NUL byte.
        guard let name = entry.name.baseAddress?.assumingMemoryBound(to: CChar.self) else { return EINVAL }
        return cal_stat_entry(descriptor, name, following ? 1 : 0, &status)
    }

    /// Returns the metadata of an entry; nil if it is gone or cannot be inspected.
    package func snapshot(of entry: Entry, reading extras: DiskProbe.Extras) -> Snapshot? {
        guard let name = entry.name.baseAddress?.assumingMemoryBound(to: CChar.self) else { return nil }
        return KernelFileSystem.stat(descriptor, name, reading: extras).snapshot
    }

    /// Checks whether a process can still write to a regular file; nil if that cannot be determined.
    package func writers(of entry: Entry) -> DiskProbe.Holders? {
        guard let name = entry.name.baseAddress?.assumingMemoryBound(to: CChar.self) else { return nil }
        switch cal_probe_entry_writers(descriptor, name) {
        case 0: return .free
        case EAGAIN: return .held
        default: return nil
        }
    }

    /// The name of the file system's type, if the kernel does not report all changes on it; nil otherwise.
    package var unreliableFileSystem: String? { FileSystemType.unreliable(descriptor) }

    package func close() { Glibc.close(descriptor) }
}

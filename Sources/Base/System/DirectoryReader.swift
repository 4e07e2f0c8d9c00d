import CAlightLinux
import Glibc

/// An open directory that is listed in chunks, without `.` and `..`, in the order of the file system.
///
/// It is closed with the last copy. Only one is open at a time, at any depth of the tree.
package struct DirectoryReader {
    /// One entry; its name is valid only until the next read into the buffer.
    package struct Entry {
        /// The name with the NUL byte by which the kernel terminates it.
        fileprivate var terminated: UnsafePointer<CChar>
        package var name: UnsafeRawBufferPointer
        /// `DT_…` of readdir(3), if the file system provides it.
        fileprivate var kind: UInt8
    }

    package let file: OpenFile
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
        file = try OpenFile(opened: descriptor)
        self.device = device
    }

    package var descriptor: Int32 { file.descriptor }

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
            let terminated = (record + name).assumingMemoryBound(to: CChar.self)
            let bytes = UnsafeRawBufferPointer(start: terminated, count: strlen(terminated))
            // The directory itself and its parent.
            if bytes.count <= 2, bytes.allSatisfy({ $0 == .dot }) { continue }
            body(Entry(terminated: terminated, name: bytes, kind: record.load(fromByteOffset: kind, as: UInt8.self)))
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
        entry.kind == UInt8(DT_UNKNOWN) ? stat(entry).snapshot?.type == .directory : entry.kind == UInt8(DT_DIR)
    }

    /// Returns the metadata of an entry, or of the target of a symbolic link.
    package func stat(
        _ entry: Entry, following: Bool = false, readingExtended: Bool = false
    ) -> DiskProbe.StatResult {
        KernelFileSystem.stat(descriptor, entry.terminated, following: following, readingExtended: readingExtended)
    }

    /// Checks whether a process can still write to a regular file; nil if that cannot be determined.
    package func writers(of entry: Entry) -> DiskProbe.Holders? {
        let found = DiskProbe.Holders(probe: cal_probe_entry_writers(descriptor, entry.terminated))
        return found == .unknown ? nil : found
    }

    /// The name of the file system's type, if the kernel does not report all changes on it; nil otherwise.
    package var unreliableFileSystem: String? { FileSystemType.unreliable(descriptor) }
}

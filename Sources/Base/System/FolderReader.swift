package import CAlightLinux
import Glibc

/// An open folder that is listed piece by piece, without `.` and `..`, in the order of the file system.
///
/// The owner closes it; there is one open at a time, however deep the tree is.
package struct FolderReader {
    /// One entry; the name is valid only as long as the buffer is not read into again.
    package struct Entry {
        package var name: UnsafeRawBufferPointer
        /// `DT_…` of readdir(3), where the file system tells.
        package var kind: UInt8
    }

    package let descriptor: Int32
    /// The device that holds the folder.
    package let device: UInt64

    /// Opens a folder without following a link below the root.
    ///
    /// - Parameters:
    ///   - path: The folder.
    ///   - root: The root that holds it, or the folder itself; links on the way to it are followed.
    ///   - error: Set to the errno when the result is nil.
    package init?(_ path: PathBytes, below root: PathBytes, error: inout Int32) {
        guard let relative = path.relative(to: root) else {
            error = EXDEV
            return nil
        }
        var device: UInt64 = 0
        let descriptor = root.withCString { root in
            PathBytes(relative).withCString { cal_open_listing(root, $0, &device) }
        }
        guard descriptor >= 0 else {
            error = -descriptor
            return nil
        }
        self.descriptor = descriptor
        self.device = device
    }

    /// Begins at the first entry again, with those that have been added since the folder was opened.
    ///
    /// btrfs lists none of them otherwise, and of those that came before the folder had its watch there is no event.
    package func rewind() { _ = lseek(descriptor, 0, SEEK_SET) }

    /// Reads the next piece and calls the closure for each entry.
    ///
    /// - Parameters:
    ///   - buffer: Where the kernel writes the piece.
    ///   - body: Called with an entry that must not be kept.
    /// - Returns: Positive when there may be more, 0 at the end, or a negative errno.
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
            // The folder itself and the one above.
            if bytes.count <= 2, bytes.allSatisfy({ $0 == .dot }) { continue }
            body(Entry(name: bytes, kind: record.load(fromByteOffset: kind, as: UInt8.self)))
        }
        return count
    }

    /// Whether an entry is a folder; a symbolic link to one is not.
    package func isFolder(_ entry: Entry) -> Bool {
        if entry.kind != UInt8(DT_UNKNOWN) { return entry.kind == UInt8(DT_DIR) }
        var status = cal_stat()
        return look(at: entry, &status) == 0 && status.mode & UInt32(S_IFMT) == UInt32(S_IFDIR)
    }

    /// The facts of an entry; 0, or the errno.
    package func look(at entry: Entry, _ status: inout cal_stat) -> Int32 {
        // The kernel ends each name with a NUL.
        guard let name = entry.name.baseAddress?.assumingMemoryBound(to: CChar.self) else { return EINVAL }
        return cal_stat_entry(descriptor, name, 0, &status)
    }

    /// The name of the file system's type when the kernel does not tell of all that happens on it.
    package var untoldFileSystem: String? { FileSystemType.untold(descriptor) }

    package func close() { Glibc.close(descriptor) }
}

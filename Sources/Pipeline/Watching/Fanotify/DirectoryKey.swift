import CAlightLinux
import Glibc

/// The identifier of a directory in fanotify(7) events: its file system's id and its file handle.
///
/// It does not change when the directory is renamed, and is never reused for another directory.
struct DirectoryKey: Hashable {
    let bytes: [UInt8]

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = Array(bytes) }

    /// Creates the key of an open directory; nil when it has none.
    init?(of descriptor: Int32) {
        let key = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Int(CAL_DIRECTORY_KEY_SIZE)) { buffer in
            let length = buffer.baseAddress.map { cal_directory_key_descriptor(descriptor, $0) } ?? 0
            return length > 0 ? Array(buffer[..<Int(length)]) : nil
        }
        guard let key else { return nil }
        bytes = key
    }

    func hash(into hasher: inout Hasher) { bytes.withUnsafeBytes { hasher.combine(bytes: $0) } }

    /// The id of the file system.
    var fileSystem: UInt64 { bytes.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) } }

    /// Opens the directory through the mount of another open one; returns a descriptor or a negative errno.
    func open(through mount: Int32) -> Int32 {
        bytes.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return -EINVAL }
            return cal_open_key(mount, base, buffer.count)
        }
    }
}

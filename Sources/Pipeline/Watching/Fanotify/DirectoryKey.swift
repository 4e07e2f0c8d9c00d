import CAlightLinux
import System

/// The identifier of a directory in fanotify(7) events: its file system's id and its file handle.
///
/// It does not change when the directory is renamed, and is never reused for another directory.
struct DirectoryKey: Hashable {
    let bytes: [UInt8]

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = Array(bytes) }

    /// Creates the key of an open directory; nil when it has none.
    init?(of directory: OpenFile) {
        var key = [UInt8](repeating: 0, count: Int(CAL_DIRECTORY_KEY_SIZE))
        let length = Int(cal_directory_key_descriptor(directory.descriptor, &key))
        guard length > 0 else { return nil }
        bytes = Array(key[..<length])
    }

    func hash(into hasher: inout Hasher) { bytes.withUnsafeBytes { hasher.combine(bytes: $0) } }

    /// The id of the file system.
    var fileSystem: UInt64 { bytes.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) } }

    /// Opens the directory through the mount of another open one.
    func open(through mount: OpenFile) -> OpenFile? {
        try? OpenFile(opened: cal_open_key(mount.descriptor, bytes, bytes.count))
    }
}

import CAlightLinux
import Glibc

/// A fanotify(7) group that reports writes, renames and deletions.
///
/// `deinit` closes it.
final class FanotifyGroup {
    let descriptor: Int32
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 * 1024, alignment: 8)

    /// Opens a group; sets `error` to the errno on failure.
    ///
    /// - Parameters:
    ///   - isUnlimited: Whether the queue is unlimited, which needs CAP_SYS_ADMIN, as process ids do.
    ///   - error: The errno.
    init?(isUnlimited: Bool, error: inout Int32) {
        descriptor = cal_fanotify_open(isUnlimited ? 1 : 0)
        if descriptor < 0 {
            error = -descriptor
            return nil
        }
    }

    deinit {
        buffer.deallocate()
        if descriptor >= 0 { close(descriptor) }
    }

    /// Marks an open directory, or its whole file system; returns 0 or the errno.
    func mark(_ directory: Int32, isFileSystem: Bool) -> Int32 {
        cal_fanotify_mark(descriptor, directory, isFileSystem ? 1 : 0, 0)
    }

    /// Removes the mark of a file system.
    func unmarkFileSystem(of directory: Int32) { _ = cal_fanotify_mark(descriptor, directory, 1, 1) }

    /// Reads the queue, up to the size of the buffer; returns whether there may be more.
    ///
    /// An event is valid only during the callback.
    func read(_ body: (cal_fanotify_event) -> Void) -> Bool {
        let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
        guard count > 0 else { return false }
        var offset = 0
        var event = cal_fanotify_event()
        while cal_fanotify_next(buffer.baseAddress, count, &offset, &event) != 0 { body(event) }
        return true
    }
}

extension cal_fanotify_event {
    /// The key of the directory.
    var directory: DirectoryKey {
        DirectoryKey(UnsafeRawBufferPointer(start: directory_key, count: directory_key_length))
    }

    /// The name in the directory.
    var entryName: [UInt8] { Array(UnsafeRawBufferPointer(start: name, count: name_length)) }

    /// The changes to the name.
    var changes: WriterChanges {
        var changes: WriterChanges = []
        if is_content != 0 { changes.insert(.content) }
        if is_removal != 0 { changes.insert(.removal) }
        if is_attributes != 0 { changes.insert(.attributes) }
        return changes
    }
}

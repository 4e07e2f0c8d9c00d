import CAlightLinux
import Glibc
import System

/// A fanotify(7) group that reports writes, renames and deletions.
///
/// It is closed with the last reference.
final class FanotifyGroup {
    private let file: OpenFile
    private let buffer: UnsafeMutableRawBufferPointer

    /// Opens a group.
    ///
    /// - Parameter isUnlimited: Whether the queue is unlimited, which needs CAP_SYS_ADMIN, as process ids do.
    /// - Throws: When the kernel refuses it.
    init(isUnlimited: Bool) throws(SystemError) {
        file = try OpenFile(opened: cal_fanotify_open(isUnlimited ? 1 : 0))
        buffer = .allocate(byteCount: 64 * 1024, alignment: 8)
    }

    deinit { buffer.deallocate() }

    var descriptor: Int32 { file.descriptor }

    /// Marks an open directory, or its whole file system; returns 0 or the errno.
    func mark(_ directory: OpenFile, isFileSystem: Bool) -> Int32 {
        cal_fanotify_mark(descriptor, directory.descriptor, isFileSystem ? 1 : 0, 0)
    }

    /// Removes the mark of a file system.
    func unmarkFileSystem(of directory: OpenFile) { _ = cal_fanotify_mark(descriptor, directory.descriptor, 1, 1) }

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

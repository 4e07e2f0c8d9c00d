import CAlightLinux
import Glibc

/// A fanotify(7) group that reports writes, renames and deletions.
///
/// `deinit` closes it.
final class FanotifyGroup {
    /// One event; valid only during the callback.
    struct Event {
        var raw: cal_fanotify_event

        var pid: Int32 { raw.pid }
        /// Whether the queue overflowed, so that events are missing.
        var isOverflow: Bool { raw.is_overflow != 0 }
        /// Whether a directory was renamed.
        var isFolderMove: Bool { raw.is_folder_move != 0 }
        var folder: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: raw.folder, count: raw.folder_length) }
        var name: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: raw.name, count: raw.name_length) }

        /// The changes to the name.
        var deeds: Deeds {
            var deeds: Deeds = []
            if raw.is_content != 0 { deeds.insert(.content) }
            if raw.is_removal != 0 { deeds.insert(.removal) }
            if raw.is_attributes != 0 { deeds.insert(.attributes) }
            return deeds
        }
    }

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
    func mark(_ folder: Int32, isFileSystem: Bool) -> Int32 {
        cal_fanotify_mark(descriptor, folder, isFileSystem ? 1 : 0, 0)
    }

    /// Removes the mark of a file system.
    func unmarkFileSystem(of folder: Int32) { _ = cal_fanotify_mark(descriptor, folder, 1, 1) }

    /// Reads the queue, up to the size of the buffer; returns whether there may be more.
    func read(_ body: (Event) -> Void) -> Bool {
        let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
        guard count > 0 else { return false }
        var offset = 0
        var event = cal_fanotify_event()
        while cal_fanotify_next(buffer.baseAddress, count, &offset, &event) != 0 { body(Event(raw: event)) }
        return true
    }
}

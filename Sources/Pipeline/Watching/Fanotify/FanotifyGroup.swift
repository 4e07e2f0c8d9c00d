import CAlightLinux
import Glibc
import System

/// A queue of fanotify(7): who writes, renames and deletes.
///
/// Closed by `deinit`.
final class FanotifyGroup {
    /// One event; valid only while it is handled.
    struct Event {
        var raw: cal_fanotify_event

        var pid: Int32 { raw.pid }
        /// Events are missing.
        var isOverflow: Bool { raw.is_overflow != 0 }
        /// A folder has another name, or had.
        var isFolderMove: Bool { raw.is_folder_move != 0 }
        var folder: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: raw.folder, count: raw.folder_length) }
        var name: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: raw.name, count: raw.name_length) }

        /// What was done to the name.
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

    /// Opens a queue; sets `error` to the errno when there is none to be had.
    ///
    /// - Parameters:
    ///   - isUnlimited: Whether it keeps all that happens, for which CAP_SYS_ADMIN is needed, as it is for process ids.
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

    /// Asks for what happens in an open folder, or on its whole file system; 0, or the errno.
    func mark(_ folder: Int32, isFileSystem: Bool) -> Int32 {
        cal_fanotify_mark(descriptor, folder, isFileSystem ? 1 : 0, 0)
    }

    /// Asks no more for what happens on a file system.
    func unmarkFileSystem(of folder: Int32) { _ = cal_fanotify_mark(descriptor, folder, 1, 1) }

    /// Reads what is in the queue, up to the size of the buffer; whether there may be more.
    func read(_ body: (Event) -> Void) -> Bool {
        let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
        guard count > 0 else { return false }
        var offset = 0
        var event = cal_fanotify_event()
        while cal_fanotify_next(buffer.baseAddress, count, &offset, &event) != 0 { body(Event(raw: event)) }
        return true
    }
}

import CAlightLinux
import FileEvents
import Glibc
import System

/// The kernel's number for one watched directory.
typealias WatchDescriptor = Int32

/// The masks of watches, see inotify(7).
enum WatchMask {
    /// For a directory above a root: only its own deletion or move.
    static let itself = IN_DELETE_SELF | IN_MOVE_SELF
    /// The same, and the names in it that appear, vanish, or get other permissions.
    static let names = itself | IN_CREATE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_ATTRIB
    /// The additional flags for raw events.
    static let raw = IN_OPEN | IN_ACCESS | IN_CLOSE_NOWRITE
}

/// One record of inotify(7).
struct InotifyEvent {
    var watch: WatchDescriptor
    /// The flags of inotify(7).
    var mask: Int32
    /// Empty when the event is about the watched directory itself; valid only during the callback.
    var name: UnsafeRawBufferPointer

    /// Whether the mask contains any of the flags.
    func has(_ bits: Int32) -> Bool { mask & bits != 0 }
    /// Whether the name is that of a directory.
    var isDirectory: Bool { has(IN_ISDIR) }

    /// The signs of a hint for the name.
    var signs: Hint.Signs {
        var signs: Hint.Signs = []
        if has(IN_CREATE | IN_MOVED_TO) { signs.insert(.appeared) }
        if has(IN_DELETE | IN_MOVED_FROM) { signs.insert(.vanished) }
        if has(IN_MOVED_FROM | IN_MOVED_TO) { signs.insert(.moved) }
        if has(IN_MODIFY) { signs.insert(.written) }
        if has(IN_CLOSE_WRITE) { signs.insert(.closed) }
        if has(IN_ATTRIB) { signs.insert(.attributes) }
        // Programs open and read each directory that they list.
        if isDirectory { return signs }
        if has(IN_OPEN) { signs.insert(.opened) }
        if has(IN_ACCESS) { signs.insert(.accessed) }
        if has(IN_CLOSE_NOWRITE) { signs.insert(.closedUnwritten) }
        return signs
    }
}

/// An inotify instance: adds watches, reads events.
///
/// It is closed with the last reference.
final class InotifyInstance {
    private let file: OpenFile
    /// The header, a name of NAME_MAX bytes and its NUL.
    private static let longestEvent = MemoryLayout<inotify_event>.size + 256
    private let buffer: UnsafeMutableRawBufferPointer

    init() throws(SystemError) {
        let opened = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
        file = try OpenFile(opened: opened >= 0 ? opened : -errno)
        buffer = .allocate(byteCount: 256 * 1024, alignment: 8)
    }

    deinit { buffer.deallocate() }

    var descriptor: Int32 { file.descriptor }

    /// Watches a directory, not a symbolic link; returns its descriptor, or a negative errno.
    ///
    /// For a directory that is already watched, under this or another path, it returns the existing descriptor.
    func add(_ directory: PathBytes, _ bits: Int32) -> WatchDescriptor {
        let mask = Self.flags(bits) | UInt32(IN_DONT_FOLLOW)
        let result = directory.withCString { inotify_add_watch(descriptor, $0, mask) }
        return result >= 0 ? result : -errno
    }

    /// Watches an open directory in the same way.
    func add(opened directory: OpenFile, _ bits: Int32) -> WatchDescriptor {
        cal_watch_open(descriptor, directory.descriptor, Self.flags(bits))
    }

    private static func flags(_ bits: Int32) -> UInt32 {
        // IN_EXCL_UNLINK: files that are unlinked while open (O_TMPFILE too) would otherwise still cause events with
        // stale names. IN_MASK_ADD: a directory may be in a tree, above a root, or both, so masks are combined.
        UInt32(bits | IN_ONLYDIR | IN_EXCL_UNLINK | IN_MASK_ADD)
    }

    /// Removes a watch.
    ///
    /// The kernel answers with IN_IGNORED, unless the directory is already gone.
    func remove(_ watch: WatchDescriptor) { inotify_rm_watch(descriptor, watch) }

    /// Reads the queue, up to the size of the buffer; returns whether there may be more.
    func read(_ body: (InotifyEvent) -> Void) -> Bool {
        let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
        guard count > 0 else { return false }
        let header = MemoryLayout<inotify_event>.size
        var offset = 0
        while offset + header <= count {
            let event = buffer.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
            let start = offset + header
            let end = start + Int(event.len)
            precondition(end <= count, "inotify returns whole records")
            let padded = UnsafeRawBufferPointer(rebasing: buffer[start..<end])
            let length = padded.baseAddress.map { strnlen($0.assumingMemoryBound(to: CChar.self), padded.count) } ?? 0
            let name = UnsafeRawBufferPointer(rebasing: padded[..<length])
            body(InotifyEvent(watch: event.wd, mask: Int32(bitPattern: event.mask), name: name))
            offset = end
        }
        // The kernel stops filling the buffer only when the next event does not fit.
        return count > buffer.count - Self.longestEvent
    }
}

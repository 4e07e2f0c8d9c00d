import CAlightLinux
import FileEvents
import Glibc
package import System

/// The kernel's number for one watched directory.
package typealias WatchDescriptor = Int32

/// The flags of inotify(7), for watches and events.
package struct InotifyMask: OptionSet, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) { self.rawValue = rawValue }

    private init(_ bits: some BinaryInteger) { rawValue = UInt32(truncatingIfNeeded: bits) }

    package static let create = InotifyMask(IN_CREATE)
    package static let modify = InotifyMask(IN_MODIFY)
    static let closeWrite = InotifyMask(IN_CLOSE_WRITE)
    static let attrib = InotifyMask(IN_ATTRIB)
    static let movedFrom = InotifyMask(IN_MOVED_FROM)
    package static let movedTo = InotifyMask(IN_MOVED_TO)
    static let delete = InotifyMask(IN_DELETE)
    static let deleteSelf = InotifyMask(IN_DELETE_SELF)
    static let moveSelf = InotifyMask(IN_MOVE_SELF)
    static let unmount = InotifyMask(IN_UNMOUNT)
    static let overflow = InotifyMask(IN_Q_OVERFLOW)
    static let ignored = InotifyMask(IN_IGNORED)
    static let isDirectory = InotifyMask(IN_ISDIR)
    static let open = InotifyMask(IN_OPEN)
    static let access = InotifyMask(IN_ACCESS)
    static let closeNoWrite = InotifyMask(IN_CLOSE_NOWRITE)

    /// The mask for a directory above a root: only its own deletion or move.
    static let itself: InotifyMask = [.deleteSelf, .moveSelf]
    /// The same, and the names in it that appear, vanish, or get other permissions.
    static let names: InotifyMask = itself.union([.create, .movedFrom, .movedTo, .delete, .attrib])
    /// The additional flags for raw events.
    static let raw: InotifyMask = [.open, .access, .closeNoWrite]
}

/// One record of inotify(7).
package struct InotifyEvent {
    package var watch: WatchDescriptor
    var mask: InotifyMask
    /// Empty when the event is about the watched directory itself; valid only during the callback.
    package var name: UnsafeRawBufferPointer

    /// Whether the mask contains any of the flags.
    func has(_ bits: InotifyMask) -> Bool { !mask.isDisjoint(with: bits) }
    /// Whether the name is that of a directory.
    var isDirectory: Bool { mask.contains(.isDirectory) }

    /// The signs of a hint for the name.
    var signs: Hint.Signs {
        var signs: Hint.Signs = []
        if has([.create, .movedTo]) { signs.insert(.appeared) }
        if has([.delete, .movedFrom]) { signs.insert(.vanished) }
        if has([.movedFrom, .movedTo]) { signs.insert(.moved) }
        if has(.modify) { signs.insert(.written) }
        if has(.closeWrite) { signs.insert(.closed) }
        if has(.attrib) { signs.insert(.attributes) }
        // Programs open and read each directory that they list.
        if isDirectory { return signs }
        if has(.open) { signs.insert(.opened) }
        if has(.access) { signs.insert(.accessed) }
        if has(.closeNoWrite) { signs.insert(.closedUnwritten) }
        return signs
    }
}

/// An inotify instance: adds watches, reads events.
///
/// It is closed with the last reference.
package final class InotifyInstance {
    private let file: OpenFile
    /// The header, a name of NAME_MAX bytes and its NUL.
    private static let longestEvent = MemoryLayout<inotify_event>.size + 256
    private let buffer: UnsafeMutableRawBufferPointer

    package init() throws(SystemError) {
        let opened = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
        file = try OpenFile(opened: opened >= 0 ? opened : -errno)
        buffer = .allocate(byteCount: 256 * 1024, alignment: 8)
    }

    deinit { buffer.deallocate() }

    var descriptor: Int32 { file.descriptor }

    /// Watches a directory, not a symbolic link; returns its descriptor, or a negative errno.
    ///
    /// For a directory that is already watched, under this or another path, it returns the existing descriptor.
    package func add(_ directory: PathBytes, _ bits: InotifyMask) -> WatchDescriptor {
        let mask = Self.flags(bits) | UInt32(IN_DONT_FOLLOW)
        let result = directory.withCString { inotify_add_watch(descriptor, $0, mask) }
        return result >= 0 ? result : -errno
    }

    /// Watches an open directory in the same way.
    func add(opened directory: Int32, _ bits: InotifyMask) -> WatchDescriptor {
        cal_watch_open(descriptor, directory, Self.flags(bits))
    }

    private static func flags(_ bits: InotifyMask) -> UInt32 {
        // IN_EXCL_UNLINK: files that are unlinked while open (O_TMPFILE too) would otherwise still cause events with
        // stale names. IN_MASK_ADD: a directory may be in a tree, above a root, or both, so masks are combined.
        bits.rawValue | UInt32(IN_ONLYDIR) | UInt32(IN_EXCL_UNLINK) | UInt32(IN_MASK_ADD)
    }

    /// Removes a watch.
    ///
    /// The kernel answers with IN_IGNORED, unless the directory is already gone.
    func remove(_ watch: WatchDescriptor) { inotify_rm_watch(descriptor, watch) }

    /// Reads the queue, up to the size of the buffer; returns whether there may be more.
    package func read(_ body: (InotifyEvent) -> Void) -> Bool {
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
            body(InotifyEvent(watch: event.wd, mask: InotifyMask(rawValue: event.mask), name: name))
            offset = end
        }
        // The kernel stops filling the buffer only when the next event does not fit.
        return count > buffer.count - Self.longestEvent
    }
}

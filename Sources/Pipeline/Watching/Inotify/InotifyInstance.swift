import CAlightLinux
import FileEvents
import Glibc
import System

/// The kernel's number for one watched folder.
typealias WatchDescriptor = Int32

/// What inotify(7) can be asked for and can tell, by its words.
struct InotifyMask: OptionSet {
    let rawValue: UInt32

    init(rawValue: UInt32) { self.rawValue = rawValue }

    private init(_ bits: some BinaryInteger) { rawValue = UInt32(truncatingIfNeeded: bits) }

    static let create = InotifyMask(IN_CREATE)
    static let modify = InotifyMask(IN_MODIFY)
    static let closeWrite = InotifyMask(IN_CLOSE_WRITE)
    static let attrib = InotifyMask(IN_ATTRIB)
    static let movedFrom = InotifyMask(IN_MOVED_FROM)
    static let movedTo = InotifyMask(IN_MOVED_TO)
    static let delete = InotifyMask(IN_DELETE)
    static let deleteSelf = InotifyMask(IN_DELETE_SELF)
    static let moveSelf = InotifyMask(IN_MOVE_SELF)
    static let unmount = InotifyMask(IN_UNMOUNT)
    static let overflow = InotifyMask(IN_Q_OVERFLOW)
    static let ignored = InotifyMask(IN_IGNORED)
    static let isFolder = InotifyMask(IN_ISDIR)
    static let open = InotifyMask(IN_OPEN)
    static let access = InotifyMask(IN_ACCESS)
    static let closeNoWrite = InotifyMask(IN_CLOSE_NOWRITE)

    /// A folder on the way to a root: that it goes itself.
    static let itself: InotifyMask = [.deleteSelf, .moveSelf]
    /// Also which names in it come, go, or get other permissions.
    static let names: InotifyMask = itself.union([.create, .movedFrom, .movedTo, .delete, .attrib])
    /// What is asked besides when the bare events are wanted.
    static let raw: InotifyMask = [.open, .access, .closeNoWrite]
}

/// One record of inotify(7).
struct InotifyEvent {
    var watch: WatchDescriptor
    var mask: InotifyMask
    /// Empty when the event is about the watched folder itself; valid only while the event is handled.
    var name: UnsafeRawBufferPointer

    /// Whether any of them is told.
    func has(_ bits: InotifyMask) -> Bool { !mask.isDisjoint(with: bits) }
    /// Whether the name is a folder's.
    var isFolder: Bool { mask.contains(.isFolder) }
}

/// An inotify instance: adds watches, reads events.
///
/// Closed by `deinit`.
final class InotifyInstance {
    let descriptor: Int32
    /// The header, a name of NAME_MAX bytes and its NUL.
    private static let longestEvent = MemoryLayout<inotify_event>.size + 256
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 * 1024, alignment: 8)

    /// Opens an instance; sets `error` to the errno when there is none to be had.
    init?(error: inout Int32) {
        descriptor = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
        guard descriptor >= 0 else {
            error = errno
            return nil
        }
    }

    deinit {
        buffer.deallocate()
        if descriptor >= 0 { close(descriptor) }
    }

    /// Watches a folder that is no link; the result is its descriptor, or a negative errno.
    ///
    /// A folder that is watched already, under this or another path, gives the descriptor that it has.
    func add(_ folder: PathBytes, _ bits: InotifyMask) -> WatchDescriptor {
        let mask = Self.flags(bits) | UInt32(IN_DONT_FOLLOW)
        let result = folder.withCString { inotify_add_watch(descriptor, $0, mask) }
        return result >= 0 ? result : -errno
    }

    /// Watches an open folder likewise.
    func add(opened folder: Int32, _ bits: InotifyMask) -> WatchDescriptor {
        cal_watch_open(descriptor, folder, Self.flags(bits))
    }

    private static func flags(_ bits: InotifyMask) -> UInt32 {
        // Files that are unlinked while open (O_TMPFILE too) would go on telling phantom names: IN_EXCL_UNLINK.
        // One folder may be in a tree, on the way to a root, or both: what is asked adds up, with IN_MASK_ADD.
        bits.rawValue | UInt32(IN_ONLYDIR) | UInt32(IN_EXCL_UNLINK) | UInt32(IN_MASK_ADD)
    }

    /// Ends a watch.
    ///
    /// The kernel answers with IN_IGNORED, unless the folder is gone already.
    func remove(_ watch: WatchDescriptor) { inotify_rm_watch(descriptor, watch) }

    /// Reads what is in the queue, up to the size of the buffer; whether there may be more.
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
            body(InotifyEvent(watch: event.wd, mask: InotifyMask(rawValue: event.mask), name: name))
            offset = end
        }
        // Only what the next event has no room in was filled by the kernel.
        return count > buffer.count - Self.longestEvent
    }
}

import FileEvents
import Glibc

/// The kernel's number for one watched folder.
typealias WatchDescriptor = Int32

/// One record of inotify(7).
struct InotifyEvent {
    var descriptor: WatchDescriptor
    var mask: UInt32
    /// Empty when the event is about the watched folder itself.
    var name: ArraySlice<UInt8>

    func has(_ bit: some BinaryInteger) -> Bool { mask & UInt32(truncatingIfNeeded: bit) != 0 }
    /// Whether the name is a folder's.
    var isFolder: Bool { mask & UInt32(IN_ISDIR) != 0 }
}

/// An inotify instance: adds watches, reads events.
///
/// Closed by `deinit`.
struct InotifyDescriptor: ~Copyable {
    let descriptor: Int32
    private var buffer = [UInt8](repeating: 0, count: 256 * 1024)

    /// What is asked of every watched folder, for all rules together: the kernel keeps one mask per folder.
    private static let mask = UInt32(
        IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_DELETE_SELF
            | IN_MOVE_SELF)

    /// Opens an instance and hands over its descriptor, to be adopted on the thread that reads it.
    static func open() throws(WatchError) -> Int32 {
        let descriptor = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
        guard descriptor >= 0 else {
            if errno == EMFILE { throw .instanceLimit(.instances) }
            throw .refused("inotify", errno: errno)
        }
        return descriptor
    }

    init(adopting descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Watches a folder; the result is its descriptor, or a negative errno.
    ///
    /// A folder that is watched already, under this or another path, gives the descriptor that it has.
    func add(_ folder: PathBytes, followingLink: Bool) -> WatchDescriptor {
        // Files that are unlinked while open (O_TMPFILE too) would go on telling phantom names: IN_EXCL_UNLINK.
        var mask = Self.mask | UInt32(IN_ONLYDIR) | UInt32(IN_EXCL_UNLINK)
        if !followingLink { mask |= UInt32(IN_DONT_FOLLOW) }
        let result = folder.withCString { inotify_add_watch(descriptor, $0, mask) }
        return result >= 0 ? result : -errno
    }

    /// Ends a watch.
    ///
    /// The kernel answers with IN_IGNORED, unless the folder is gone already.
    func remove(_ watch: WatchDescriptor) { inotify_rm_watch(descriptor, watch) }

    /// Reads what is in the queue, up to the size of the buffer; false when there was nothing.
    mutating func read(_ body: (InotifyEvent) -> Void) -> Bool {
        let count = buffer.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
        guard count > 0 else { return false }
        let header = MemoryLayout<inotify_event>.size
        var offset = 0
        while offset + header <= count {
            let event = buffer.withUnsafeBytes {
                $0.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
            }
            let start = offset + header
            let end = start + Int(event.len)
            precondition(end <= count, "inotify returns whole records")
            let padded = buffer[start..<end]
            let name = padded[..<(padded.firstIndex(of: 0) ?? end)]
            body(InotifyEvent(descriptor: event.wd, mask: event.mask, name: name))
            offset = end
        }
        return true
    }
}

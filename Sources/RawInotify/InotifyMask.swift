#if canImport(Musl)
import Musl
#else
import Glibc
#endif

/// What inotify(7) can be asked for, and what it tells, by its own words.
public struct InotifyMask: OptionSet, Sendable, Hashable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) { self.rawValue = rawValue }

    // The constants are signed in one C library, and unsigned in another.
    private init(_ bits: some BinaryInteger) { rawValue = UInt32(truncatingIfNeeded: bits) }

    // MARK: Asked for, and told

    public static let access = InotifyMask(IN_ACCESS)
    public static let modify = InotifyMask(IN_MODIFY)
    public static let attrib = InotifyMask(IN_ATTRIB)
    public static let closeWrite = InotifyMask(IN_CLOSE_WRITE)
    public static let closeNoWrite = InotifyMask(IN_CLOSE_NOWRITE)
    public static let open = InotifyMask(IN_OPEN)
    public static let movedFrom = InotifyMask(IN_MOVED_FROM)
    public static let movedTo = InotifyMask(IN_MOVED_TO)
    public static let create = InotifyMask(IN_CREATE)
    public static let delete = InotifyMask(IN_DELETE)
    public static let deleteSelf = InotifyMask(IN_DELETE_SELF)
    public static let moveSelf = InotifyMask(IN_MOVE_SELF)

    public static let close: InotifyMask = [.closeWrite, .closeNoWrite]
    public static let move: InotifyMask = [.movedFrom, .movedTo]
    /// All of the above.
    public static let allEvents: InotifyMask = [
        .access, .modify, .attrib, .close, .open, .move, .create, .delete, .deleteSelf, .moveSelf,
    ]

    // MARK: Only asked for

    /// Fails when the path is no directory.
    public static let onlyDirectory = InotifyMask(IN_ONLYDIR)
    /// Watches a symbolic link itself.
    public static let dontFollow = InotifyMask(IN_DONT_FOLLOW)
    /// Leaves out what is done to files that have no name in the directory any more.
    public static let exclUnlink = InotifyMask(IN_EXCL_UNLINK)
    /// Fails when the file has a watch already.
    ///
    /// Since Linux 4.18; glibc has no word for it before 2.28.
    public static let maskCreate = InotifyMask(rawValue: 0x1000_0000)
    /// Adds to what an existing watch asks for; else it is replaced.
    public static let maskAdd = InotifyMask(IN_MASK_ADD)
    /// Ends the watch after its first event.
    public static let oneShot = InotifyMask(IN_ONESHOT)

    // MARK: Only told

    /// What the event is about is a directory.
    public static let isDirectory = InotifyMask(IN_ISDIR)
    /// The watch has ended: removed, or the file, or its file system, is gone.
    public static let ignored = InotifyMask(IN_IGNORED)
    /// The file system was unmounted.
    public static let unmount = InotifyMask(IN_UNMOUNT)
    /// The kernel's queue was full, and events after this one are missing.
    public static let queueOverflow = InotifyMask(IN_Q_OVERFLOW)
}

extension InotifyMask: CustomStringConvertible {
    private static let words: [(InotifyMask, String)] = [
        (.access, "access"), (.modify, "modify"), (.attrib, "attrib"), (.closeWrite, "closeWrite"),
        (.closeNoWrite, "closeNoWrite"), (.open, "open"), (.movedFrom, "movedFrom"), (.movedTo, "movedTo"),
        (.create, "create"), (.delete, "delete"), (.deleteSelf, "deleteSelf"), (.moveSelf, "moveSelf"),
        (.onlyDirectory, "onlyDirectory"), (.dontFollow, "dontFollow"), (.exclUnlink, "exclUnlink"),
        (.maskCreate, "maskCreate"), (.maskAdd, "maskAdd"), (.oneShot, "oneShot"), (.isDirectory, "isDirectory"),
        (.ignored, "ignored"), (.unmount, "unmount"), (.queueOverflow, "queueOverflow"),
    ]

    /// The words, such as `[create, isDirectory]`; bits without one in hexadecimal.
    public var description: String {
        var rest = self
        var words: [String] = []
        for (bit, word) in Self.words where contains(bit) {
            words.append(word)
            rest.subtract(bit)
        }
        if !rest.isEmpty { words.append("0x" + String(rest.rawValue, radix: 16)) }
        return "[\(words.joined(separator: ", "))]"
    }
}

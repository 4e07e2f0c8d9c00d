public import FileEvents

/// The kernel's number for what is watched: its watch descriptor.
///
/// It belongs to one instance, and to the file rather than to its path: two paths of one file have the same.
public struct InotifyWatch: RawRepresentable, Sendable, Hashable {
    public let rawValue: Int32

    public init(rawValue: Int32) { self.rawValue = rawValue }
}

/// One record of inotify(7), as the kernel wrote it.
public struct InotifyEvent: Sendable, Hashable {
    /// What was watched; −1 when it is an overflow.
    public var watch: InotifyWatch
    public var mask: InotifyMask
    /// Equal in the two events of one rename, else 0.
    public var cookie: UInt32
    /// The name in the watched directory; empty when the event is about what is watched itself.
    public var name: PathBytes

    public init(watch: InotifyWatch, mask: InotifyMask, cookie: UInt32 = 0, name: PathBytes = "") {
        self.watch = watch
        self.mask = mask
        self.cookie = cookie
        self.name = name
    }

    /// Whether the kernel's queue was full, so that events are missing from here on.
    ///
    /// What is watched has to be looked at again then. The watches are still there.
    public var isOverflow: Bool { mask.contains(.queueOverflow) }
}

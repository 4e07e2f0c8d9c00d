/// What kind of thing a path names.
public enum FileType: String, Sendable, Hashable, CaseIterable {
    case file, directory, symlink
    /// A pipe, a socket or a device.
    case other
}

/// Which file a path names: the same after a rename, another after a replacement.
///
/// Device, inode and birth time together; never the inode alone, which ext4
/// gives to the next file at once. Where the file system keeps no birth time it
/// is zero, and a reused inode can't be told from its predecessor.
public struct FileIdentity: Hashable, Sendable, CustomStringConvertible {
    public var deviceMajor: UInt32
    public var deviceMinor: UInt32
    public var inode: UInt64
    /// Nanoseconds since 1970; 0 when unknown.
    public var birth: Int64

    public init(deviceMajor: UInt32, deviceMinor: UInt32, inode: UInt64, birth: Int64) {
        self.deviceMajor = deviceMajor
        self.deviceMinor = deviceMinor
        self.inode = inode
        self.birth = birth
    }

    /// `major:minor:inode:birth`, the `id` of the plugin protocol.
    public var description: String { "\(deviceMajor):\(deviceMinor):\(inode):\(birth)" }
}

/// The facts of a path at one moment, as statx(2) gives them without following links.
public struct Snapshot: Hashable, Sendable {
    public var identity: FileIdentity
    public var type: FileType
    /// Bytes.
    public var size: UInt64
    /// Last change of the content.
    ///
    /// Anyone may set it, so it never decides that a file is finished.
    public var modified: Timestamp
    /// Last change of content or attributes, set by the kernel alone.
    public var changed: Timestamp
    /// Birth; nil where the file system does not keep it.
    public var born: Timestamp?
    /// Permission bits, without the file type.
    public var mode: UInt16
    public var uid: UInt32
    public var gid: UInt32
    /// Number of names.
    public var links: UInt32

    public init(
        identity: FileIdentity, type: FileType, size: UInt64, modified: Timestamp, changed: Timestamp, born: Timestamp?,
        mode: UInt16, uid: UInt32, gid: UInt32, links: UInt32
    ) {
        self.identity = identity
        self.type = type
        self.size = size
        self.modified = modified
        self.changed = changed
        self.born = born
        self.mode = mode
        self.uid = uid
        self.gid = gid
        self.links = links
    }

    /// Whether both show the same file with the same content, as far as size and times can tell.
    public func hasSameContent(as other: Snapshot) -> Bool {
        identity == other.identity && type == other.type && size == other.size && modified == other.modified
    }
}

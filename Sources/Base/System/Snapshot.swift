/// The type of a file.
public enum FileType: String, Sendable, Hashable, CaseIterable, Codable {
    case file, directory, symlink
    /// A pipe, a socket or a device.
    case other
}

/// The identity of a file: the same after a rename, different after a replacement.
///
/// It consists of device, inode and birth time, never the inode alone, because ext4 reuses an inode at once. If the
/// file system has no birth times, the birth is zero, and a reused inode is indistinguishable from its predecessor.
public struct FileIdentity: Hashable, Sendable, Codable, CustomStringConvertible {
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

    /// The device and the inode alone.
    package var withoutBirth: FileIdentity {
        FileIdentity(deviceMajor: deviceMajor, deviceMinor: deviceMinor, inode: inode, birth: 0)
    }

    /// Whether the other identity is equal, or has the same device and inode where this one has no birth time.
    package func includes(_ other: FileIdentity) -> Bool { self == other || birth == 0 && self == other.withoutBirth }
}

/// The metadata of a path at one time, as returned by statx(2) without following links.
public struct Snapshot: Hashable, Sendable, Codable {
    public var identity: FileIdentity
    public var type: FileType
    /// The size in bytes.
    public var size: UInt64
    /// The last change of the content.
    ///
    /// Programs may set it to any value, so it never decides whether a file is finished.
    public var modified: Timestamp
    /// The last change of content or attributes, set only by the kernel.
    public var changed: Timestamp
    /// The birth time; nil if the file system does not store it.
    public var born: Timestamp?
    /// Permission bits, without the file type.
    public var mode: UInt16
    public var uid: UInt32
    public var gid: UInt32
    /// The number of hard links.
    public var links: UInt32
    /// The mount that the path was accessed through, as a mount id of statx(2), valid until the next boot; 0 if
    /// unknown.
    public var mount: UInt64
    /// The extended attributes, sorted by name; nil if they were not requested.
    public var extended: [ExtendedAttribute]?
    /// A checksum of the content; nil if it was not requested.
    public var digest: [UInt8]?
    /// The number of bytes delivered to a rule that follows the file; nil if no rule does.
    public var delivered: UInt64?
    public init(
        identity: FileIdentity, type: FileType, size: UInt64, modified: Timestamp, changed: Timestamp, born: Timestamp?,
        mode: UInt16, uid: UInt32, gid: UInt32, links: UInt32, mount: UInt64 = 0, extended: [ExtendedAttribute]? = nil,
        digest: [UInt8]? = nil, delivered: UInt64? = nil
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
        self.mount = mount
        self.extended = extended
        self.digest = digest
        self.delivered = delivered
    }

    /// The placeholder for the metadata of a root that has never been seen.
    public static let unseen = Snapshot(
        identity: FileIdentity(deviceMajor: 0, deviceMinor: 0, inode: 0, birth: 0), type: .directory, size: 0,
        modified: Timestamp(seconds: 0, nanoseconds: 0), changed: Timestamp(seconds: 0, nanoseconds: 0), born: nil,
        mode: 0, uid: 0, gid: 0, links: 0)

    /// The same metadata with an identity that no file has, so that every file at the path differs from it.
    package var asAnotherFile: Snapshot {
        var other = self
        other.identity = Self.unseen.identity
        return other
    }

    /// Returns the time of the last change of the content.
    ///
    /// A modification time in the future, as a camera with a wrong clock sets it, is replaced by the change time, which
    /// is that of this machine, or by the current time if even that is in the future.
    package func modified(asOf now: Timestamp) -> Timestamp { modified > now ? min(changed, now) : modified }

    /// Whether both describe the same file with the same content, as far as size and times show.
    public func hasSameContent(as other: Snapshot) -> Bool {
        identity == other.identity && type == other.type && size == other.size && modified == other.modified
    }

    /// Whether the file is unchanged since: only the kernel sets the change time, so it cannot be set back.
    package func isUnchanged(_ later: Snapshot) -> Bool {
        identity == later.identity && changed == later.changed && size == later.size && modified == later.modified
            && type == later.type && mode == later.mode && links == later.links
    }

    /// Whether the file has several names; the link count of a directory counts its subdirectories.
    package var hasSeveralNames: Bool { links > 1 && type != .directory }

    /// Whether this may be the copy of a file in the upper layer of overlayfs, created when the file of the lower layer
    /// was about to change.
    ///
    /// The copy has the same inode number, but a birth time of its own. A new file may also reuse the number of a
    /// removed file of the upper layer. Size and modification time distinguish the two, unless the copy has been
    /// written to.
    package func mayBeCopy(of lower: Snapshot) -> Bool {
        type == lower.type && lower.identity.birth != 0 && lower.identity.birth < identity.birth
            && identity.withoutBirth == lower.identity.withoutBirth
    }

    /// Whether this is the copy of a file in the upper layer of overlayfs that has not been written to.
    package func isUnwrittenCopy(of lower: Snapshot) -> Bool {
        mayBeCopy(of: lower) && (type == .directory || size == lower.size && modified == lower.modified)
    }
}

/// An extended attribute of a file, see xattr(7).
public struct ExtendedAttribute: Hashable, Sendable, Codable {
    /// The name with its namespace, such as `user.comment`.
    public var name: PathBytes
    public var value: [UInt8]

    public init(name: PathBytes, value: [UInt8]) {
        self.name = name
        self.value = value
    }
}

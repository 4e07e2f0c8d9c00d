import System

/// A file, directory or link of the world.
///
/// Its index in the inode table is never reused, its number is.
struct Inode {
    let volume: Int
    let number: UInt64
    let type: FileType
    /// The content of the file; each write creates a new one.
    var content = 0
    /// The contents before the last one, each with the offset of its end, if data was appended.
    var parts: [(content: Int, end: UInt64)] = []
    var size: UInt64 = 0
    var modified: Timestamp
    var changed: Timestamp
    let born: Timestamp
    var mode: UInt16
    var uid: UInt32 = 1000
    /// The number of names of a file.
    var links = 0
    /// The number of processes that have the file open for writing.
    var writers = 0
    /// The entries of a directory.
    var entries: [PathBytes: Int] = [:]
    /// The target of a link.
    var target: PathBytes?
    /// The parent of a directory.
    var parent = 0
    var isFoldingCase = false
    var hasBirth = true
    var isRemoved = false
}

/// A file system.
struct Volume {
    let minor: UInt32
    var root = 0
    /// The inode that the file system is mounted over, if any.
    var covers: Int?
    /// The id of the current mount; 0 if there is none.
    var mount: UInt64 = 0
    /// The path of the mount point.
    var point: PathBytes
    /// The numbers of removed inodes, ascending: the lowest is reused first.
    var free: [UInt64] = []
    var nextNumber: UInt64 = 12

    mutating func takeNumber() -> UInt64 {
        if !free.isEmpty { return free.removeFirst() }
        nextNumber += 1
        return nextNumber - 1
    }

    mutating func giveBack(_ number: UInt64) {
        free.insert(number, at: free.firstIndex { $0 > number } ?? free.count)
    }
}

/// A file that a process has open for writing, and the name by which it was opened, following its renames.
struct WriteHandle {
    let node: Int
    var directory: Int
    var name: PathBytes
    var isUnlinked = false
}

/// A record of the kernel's queue.
struct KernelEvent {
    struct Kinds: OptionSet {
        let rawValue: UInt32
        init(rawValue: UInt32) { self.rawValue = rawValue }
        private init(bit: UInt32) { rawValue = 1 << bit }

        static let create = Kinds(bit: 0)
        static let modify = Kinds(bit: 1)
        static let closeWrite = Kinds(bit: 2)
        static let attrib = Kinds(bit: 3)
        static let movedFrom = Kinds(bit: 4)
        static let movedTo = Kinds(bit: 5)
        static let delete = Kinds(bit: 6)
        static let deleteSelf = Kinds(bit: 7)
        static let moveSelf = Kinds(bit: 8)
        static let unmount = Kinds(bit: 9)
        static let ignored = Kinds(bit: 10)
        static let open = Kinds(bit: 11)
        static let access = Kinds(bit: 12)
        static let closeNoWrite = Kinds(bit: 13)
        static let overflow = Kinds(bit: 14)

        static let itself: Kinds = [.deleteSelf, .moveSelf]
        static let names: Kinds = [.deleteSelf, .moveSelf, .create, .movedFrom, .movedTo, .delete, .attrib]
        static let raw: Kinds = [.open, .access, .closeNoWrite]
        static let always: Kinds = [.unmount, .ignored]
        /// The events that the kernel reports while the directory is locked against other changes of names.
        static let nameChanges: Kinds = [.create, .movedFrom, .movedTo, .delete]
    }

    var watch: Int32
    var kinds: Kinds
    /// Nil for the watched directory itself.
    var name: PathBytes?
    var isDirectory: Bool
    var readable: Duration

    func has(_ some: Kinds) -> Bool { !kinds.isDisjoint(with: some) }
}

import Glibc
import System
import TestKit

/// The complete state of a world.
struct WorldState {
    var nodes: [Inode] = []
    var volumes: [Volume] = []
    /// Volumes by the inode that they are mounted over.
    var covered: [Int: Int] = [:]
    var nextMount: UInt64 = 20
    var mountEdition = 0
    var mountedOnce: Set<PathBytes> = []
    var generator: SeededGenerator
    let base: PathBytes
    let hasDelays: Bool
    var contents = 0
    var handles: [WriteHandle] = []
    var openDirectories: [Int32: Int] = [:]
    var nextDescriptor: Int32 = 1000

    /// The kernel's queue.
    var queue = KernelQueue()
    /// The pending change, the number of further inspections by the program before it, and the number of such changes
    /// so far.
    var race: (pending: (operation: Operation, inspections: Int)?, count: Int) = (nil, 0)

    static let start = Timestamp(seconds: 1_772_355_600, nanoseconds: 0)
    /// The time since the world was created.
    var elapsed: Duration {
        get { queue.elapsed }
        set { queue.elapsed = newValue }
    }
    var now: Timestamp { Self.start.advanced(by: elapsed) }

    init(seed: UInt64, base: PathBytes, hasDelays: Bool) {
        generator = SeededGenerator(seed: seed)
        self.base = base
        self.hasDelays = hasDelays
        addVolume(at: "/")
        volumes[0].mount = nextMount
        var directory = volumes[0].root
        for name in base.bytes.split(separator: .slash) {
            let made = addNode(.directory, in: 0, mode: 0o755, like: directory)
            attach(made, PathBytes(name), in: directory)
            directory = made
        }
    }

    /// Whether the watcher reports only new paths, as a test of the checks.
    var isDeaf = false
    /// The number of applied operations.
    var changes = 0
    /// The number of inspections of files by the program.
    private(set) var inspections = 0
    /// The number of times that the program has read the metadata of a name, in whatever directory.
    var looks: [PathBytes: Int] = [:]

    /// Counts an inspection of files by the program.
    mutating func inspect() {
        self.inspections += 1
        guard let (operation, inspections) = race.pending else { return }
        if inspections > 0 { race.pending = (operation, inspections - 1) } else { endRace() }
    }

    mutating func endRace() {
        guard let (operation, _) = race.pending else { return }
        race = (nil, race.count + 1)
        if apply(operation) { tick() }
    }

    // MARK: Time

    /// Advances the time by some microseconds, so that no two calls return the same time.
    @discardableResult mutating func tick() -> Timestamp {
        elapsed += .microseconds(Int64.random(in: 1...5, using: &generator))
        return now
    }

    // MARK: Inodes

    mutating func addVolume(at point: PathBytes) {
        volumes.append(Volume(minor: UInt32(volumes.count + 1), point: point))
        let volume = volumes.count - 1
        let time = tick()
        nodes.append(
            Inode(
                volume: volume, number: 2, type: .directory, modified: time, changed: time, born: time, mode: 0o755))
        nodes[nodes.count - 1].parent = nodes.count - 1
        volumes[volume].root = nodes.count - 1
    }

    mutating func addNode(_ type: FileType, in volume: Int, mode: UInt16, like directory: Int) -> Int {
        let time = tick()
        var node = Inode(
            volume: volume, number: volumes[volume].takeNumber(), type: type, modified: time, changed: time, born: time,
            mode: mode)
        node.isFoldingCase = type == .directory && nodes[directory].isFoldingCase
        node.hasBirth = nodes[directory].hasBirth
        node.size = type == .directory ? 4096 : 0
        nodes.append(node)
        return nodes.count - 1
    }

    /// Adds a name for an inode in a directory.
    mutating func attach(_ node: Int, _ name: PathBytes, in directory: Int) {
        nodes[directory].entries[name] = node
        if nodes[node].type == .directory { nodes[node].parent = directory } else { nodes[node].links += 1 }
    }

    /// Removes a name.
    ///
    /// The file is freed with its last name and its last open descriptor.
    mutating func detach(_ name: PathBytes, from directory: Int) {
        guard let node = nodes[directory].entries.removeValue(forKey: name) else { return }
        if nodes[node].type != .directory { nodes[node].links -= 1 }
    }

    /// Frees the inode of a file or directory without names.
    mutating func release(_ node: Int) {
        guard !nodes[node].isRemoved, nodes[node].writers == 0 else { return }
        guard nodes[node].type == .directory || nodes[node].links == 0 else { return }
        nodes[node].isRemoved = true
        volumes[nodes[node].volume].giveBack(nodes[node].number)
        guard nodes[node].type == .directory else { return }
        let time = max(elapsed, queue.notBefore[node] ?? elapsed)
        queue.report(.deleteSelf, node, at: time)
        queue.endWatch(node, at: time)
    }

    /// Records that names in a directory have changed.
    mutating func recordNames(_ directory: Int) {
        let time = tick()
        (nodes[directory].modified, nodes[directory].changed) = (time, time)
    }

    mutating func recordChange(_ node: Int) { nodes[node].changed = tick() }

    mutating func recordContent(_ node: Int) {
        contents += 1
        nodes[node].content = contents
        nodes[node].parts = []
        // The size often stays the same, so that it does not reveal the change.
        if nodes[node].size == 0 || Bool.random(using: &generator) {
            nodes[node].size = UInt64.random(in: 20...60, using: &generator)
        }
        let time = tick()
        (nodes[node].modified, nodes[node].changed) = (time, time)
    }

    /// Appends to a file.
    mutating func recordAddition(_ node: Int) {
        nodes[node].parts.append((nodes[node].content, nodes[node].size))
        contents += 1
        nodes[node].content = contents
        nodes[node].size += UInt64.random(in: 5...40, using: &generator)
        let time = tick()
        (nodes[node].modified, nodes[node].changed) = (time, time)
    }

    /// Returns the bytes of a file: the numbers of its contents, repeated.
    func text(_ node: Int) -> [UInt8] {
        var text: [UInt8] = []
        for part in nodes[node].parts + [(nodes[node].content, nodes[node].size)] {
            let line = Array("content \(part.content)\n".utf8)
            text += (UInt64(text.count)..<max(UInt64(text.count), part.end)).map { line[Int($0) % line.count] }
        }
        return text
    }

    // MARK: Names

    /// Returns the inode of a name, and the name as stored.
    func lookUp(_ name: PathBytes, in directory: Int) -> (name: PathBytes, node: Int)? {
        let inode = nodes[directory]
        if let node = inode.entries[name] { return (name, node) }
        guard inode.isFoldingCase else { return nil }
        let folded = Self.fold(name)
        guard let stored = inode.entries.keys.first(where: { Self.fold($0) == folded }) else { return nil }
        return inode.entries[stored].map { (stored, $0) }
    }

    static func fold(_ name: PathBytes) -> PathBytes {
        PathBytes(name.bytes.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 + 32 : $0 })
    }

    /// The mount points by mount id.
    var mounts: [UInt64: PathBytes] {
        var mounts: [UInt64: PathBytes] = [:]
        for volume in volumes where volume.mount != 0 { mounts[volume.mount] = volume.point }
        return mounts
    }

    /// Returns the root of the file system that is mounted over a directory, or the directory itself.
    func visible(_ node: Int) -> Int {
        var node = node
        while let volume = covered[node] { node = volumes[volume].root }
        return node
    }

    func isVolumeRoot(_ node: Int) -> Bool { volumes[nodes[node].volume].root == node }

    func parent(of directory: Int) -> Int {
        var directory = directory
        while isVolumeRoot(directory), let covered = volumes[nodes[directory].volume].covers { directory = covered }
        return nodes[directory].parent
    }

    /// The root of the whole tree.
    var root: Int { visible(volumes[0].root) }

    /// The result of following a path.
    struct PathLocation {
        var directory: Int
        /// The name as stored, or as requested if there is no such entry.
        var name: PathBytes
        /// The inode; nil if there is no entry of that name.
        var node: Int?
        /// The path without links, if it was followed from the root of the tree.
        var physical: PathBytes
        /// The directories on the way, each with the name that was looked up in it.
        var steps: [(directory: Int, name: PathBytes)] = []
    }

    enum Links {
        /// All links are followed; all except a final one; none.
        case all, middle, none
    }

    /// Follows a path.
    ///
    /// - Throws: The error of the system call. A missing last component is not an error.
    func walk(
        _ path: PathBytes, from start: Int? = nil, following links: Links = .middle, isPrivileged: Bool = false
    ) throws(SystemError) -> PathLocation {
        var directory = path.bytes.first == .slash ? root : start ?? root
        var rest = Array(path.bytes.split(separator: .slash).reversed())
        var spot = PathLocation(directory: parent(of: directory), name: ".", node: directory, physical: "/")
        var followed = 0
        while let word = rest.popLast() {
            guard nodes[directory].type == .directory else { throw SystemError(errno: ENOTDIR) }
            guard isPrivileged || nodes[directory].mode & 0o111 != 0 else { throw SystemError(errno: EACCES) }
            if word.elementsEqual([.dot]) { continue }
            if word.elementsEqual([.dot, .dot]) {
                directory = parent(of: directory)
                spot.node = directory
                spot.physical = spot.physical.parent
                continue
            }
            let name = PathBytes(word)
            guard word.count <= 255 else { throw SystemError(errno: ENAMETOOLONG) }
            spot.directory = directory
            spot.steps.append((directory, name))
            guard let found = lookUp(name, in: directory) else {
                guard rest.isEmpty else { throw SystemError(errno: ENOENT) }
                spot.name = name
                spot.node = nil
                return spot
            }
            let node = visible(found.node)
            if nodes[node].type == .symlink, links == .all || !rest.isEmpty {
                followed += 1
                guard links != .none, followed <= 40, let target = nodes[node].target else {
                    throw SystemError(errno: ELOOP)
                }
                if target.bytes.first == .slash {
                    directory = root
                    spot.physical = "/"
                }
                spot.node = directory
                rest += target.bytes.split(separator: .slash).reversed()
                continue
            }
            spot.name = found.name
            spot.node = node
            spot.physical = spot.physical.appending(found.name.bytes)
            directory = node
        }
        return spot
    }

    /// Returns the inode at a path, whatever the modes.
    func truth(_ path: PathBytes) -> Int? { (try? walk(path, isPrivileged: true))?.node }

    // MARK: Operands

    /// Returns the directory entry that an operation refers to.
    func spot(_ path: PathBytes) -> PathLocation? {
        let trimmed = path.bytes.last == .slash ? PathBytes(path.bytes.dropLast()) : path
        let spot = try? walk(base.resolving(trimmed.bytes), following: .middle, isPrivileged: true)
        return spot?.name == "." ? nil : spot
    }

    /// Returns an existing entry of the type that the notation specifies.
    func existing(_ path: PathBytes, isDirectory: Bool? = nil) -> (spot: PathLocation, node: Int)? {
        guard let spot = spot(path), let node = spot.node else { return nil }
        let type = nodes[node].type
        guard (type == .directory) == (isDirectory ?? (path.bytes.last == .slash)) else { return nil }
        return (spot, node)
    }

    /// Returns an existing regular file.
    func file(_ path: PathBytes) -> (spot: PathLocation, node: Int)? {
        guard let found = existing(path, isDirectory: false), nodes[found.node].type == .file else { return nil }
        return found
    }

    func vacant(_ path: PathBytes) -> PathLocation? {
        guard let spot = spot(path), spot.node == nil, nodes[spot.directory].type == .directory,
            !nodes[spot.directory].isRemoved
        else { return nil }
        return spot
    }

    func isBusy(_ node: Int, _ spot: PathLocation) -> Bool { isVolumeRoot(node) || node == visible(baseNode) }

    var baseNode: Int { (try? walk(base, isPrivileged: true))?.node ?? root }

    func isBelow(_ directory: Int, _ ancestor: Int) -> Bool {
        var directory = directory
        while directory != ancestor {
            let above = parent(of: directory)
            if above == directory { return false }
            directory = above
        }
        return true
    }

    // MARK: Metadata

    func snapshot(_ node: Int) -> Snapshot {
        let inode = nodes[node]
        let volume = volumes[inode.volume]
        let birth = inode.hasBirth ? inode.born.seconds * 1_000_000_000 + Int64(inode.born.nanoseconds) : 0
        let links =
            inode.type == .directory
            ? (inode.isRemoved ? 0 : 2 + inode.entries.values.count { nodes[$0].type == .directory }) : inode.links
        return Snapshot(
            identity: FileIdentity(deviceMajor: 8, deviceMinor: volume.minor, inode: inode.number, birth: birth),
            type: inode.type, size: inode.size, modified: inode.modified, changed: inode.changed,
            born: inode.hasBirth ? inode.born : nil, mode: inode.mode, uid: inode.uid, gid: inode.uid,
            links: UInt32(links), mount: volume.mount)
    }

    /// Returns the names in a directory, sorted, with the inodes that they lead to.
    func entries(_ directory: Int) -> [(name: PathBytes, node: Int)] {
        nodes[directory].entries.sorted { $0.key < $1.key }.map { ($0.key, visible($0.value)) }
    }
}

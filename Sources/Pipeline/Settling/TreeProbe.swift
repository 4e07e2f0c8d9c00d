import Glibc
package import System

/// The combined metadata of everything in a directory tree.
package struct TreeMetadata: Sendable, Hashable {
    /// The ``TreeFingerprint`` of everything below.
    package var fingerprint: [UInt8]
    /// The number of entries below.
    package var entries = 0
    /// The newest change time (ctime) of the directory and everything below, by the kernel's clock.
    package var changed: Timestamp
    /// Whether there are files whose writers are unknown, or directories that can't be listed.
    package var isUncertain = false
}

extension DiskProbe {
    package enum TreeResult: Sendable, Hashable {
        /// No process writes to any of the files.
        case quiet(TreeMetadata)
        /// A regular file has a writer, or an entry vanished during the walk.
        case busy
        /// There is no such directory.
        case absent
        /// The directory itself can't be listed.
        case unreadable(errno: Int32)
    }
}

extension FileSystem {
    /// Walks a directory tree and returns its combined metadata.
    ///
    /// Symbolic links are entries and are not followed. At most four descriptors are
    /// open at once, whatever the depth. Searching for writers about doubles the time:
    /// 20,000 files took 0.26 s instead of 0.13 s, without optimisation.
    ///
    /// - Parameters:
    ///   - location: The directory.
    ///   - askingWriters: Whether a regular file with a writer stops the walk.
    /// - Returns: The result of the walk.
    package func tree(at location: DiskProbe.Location, askingWriters: Bool = true) -> DiskProbe.TreeResult {
        let root: OpenFile
        do throws(SystemError) {
            root = try open(location)
        } catch {
            switch error.errno {
            // A symbolic link, or a file in place of the directory.
            case ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG: return .absent
            default: return .unreadable(errno: error.errno)
            }
        }
        let top: Snapshot
        switch stat(DiskProbe.Location(root, ".")) {
        case .present(let snapshot): top = snapshot
        case .absent: return .busy
        case .unreadable(let errno): return .unreadable(errno: errno)
        }
        var fingerprint = TreeFingerprint()
        var metadata = TreeMetadata(fingerprint: [], changed: top.changed)
        var directories = [PathBytes(".")]
        while let current = directories.popLast() {
            let directory: OpenFile
            let names: [PathBytes]
            do throws(SystemError) {
                directory = try open(current, beneath: root)
                names = try self.names(in: DiskProbe.Location(directory, "."))
            } catch {
                if error.errno == ENOENT || error.errno == ENOTDIR || error.errno == ELOOP { return .busy }
                if current == "." { return .unreadable(errno: error.errno) }
                metadata.isUncertain = true
                continue
            }
            for name in names {
                let item = DiskProbe.Location(directory, name)
                let entry: Snapshot
                switch stat(item) {
                case .present(let snapshot): entry = snapshot
                case .absent: return .busy
                case .unreadable:
                    metadata.isUncertain = true
                    continue
                }
                let path = current.appending(name.bytes)
                fingerprint.add(path, entry)
                metadata.entries += 1
                metadata.changed = max(metadata.changed, entry.changed)
                if entry.type == .directory { directories.append(path) }
                guard askingWriters, entry.type == .file else { continue }
                switch writers(of: item) {
                case .free: break
                case .held: return .busy
                case .unknown: metadata.isUncertain = true
                }
            }
        }
        metadata.fingerprint = fingerprint.bytes
        return .quiet(metadata)
    }

    /// Opens a directory, which must not be a symbolic link.
    private func open(_ location: DiskProbe.Location) throws(SystemError) -> OpenFile {
        if let directory = location.directory { return try open(location.name, beneath: directory) }
        return try open(PathBytes(location.name.lastComponent), beneath: open(root: location.name.parent))
    }
}

/// Checksums of the metadata of everything in a directory tree.
///
/// They are sums over the entries, so the order in which the file system lists them does not matter, and they are stable
/// across restarts. They detect accidental changes; they do not protect against deliberate collisions.
package struct TreeFingerprint {
    /// The relative paths, identities, types, sizes and modification times, 128 bits.
    private var content: (UInt64, UInt64) = (0, 0)
    /// The modes, owners and link counts.
    private var attributes: UInt64 = 0
    /// The change times of all but directories.
    private var changes: UInt64 = 0

    mutating func add(_ path: PathBytes, _ entry: Snapshot) {
        let metadata = Self.words(entry)
        let first = Self.mixed(metadata, into: Self.hash(path, seed: 0x9E37_79B9_7F4A_7C15))
        content.0 &+= first
        content.1 &+= Self.mixed(metadata, into: Self.hash(path, seed: 0xD1B5_4A32_D192_ED03))
        guard entry.type != .directory else { return }
        let owner = UInt64(entry.uid) << 32 | UInt64(entry.gid)
        attributes &+= Self.mixed([UInt64(entry.mode), owner, UInt64(entry.links)], into: first)
        let changed = [UInt64(bitPattern: entry.changed.seconds), UInt64(entry.changed.nanoseconds)]
        changes &+= Self.mixed(changed, into: first)
    }

    /// The checksums, of 16, 8 and 8 bytes.
    var bytes: [UInt8] {
        [content.1, content.0, attributes, changes].flatMap { word in
            (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * $0)) }
        }
    }

    /// Returns the part of a fingerprint that is the same until something below is created, removed or written, as far
    /// as sizes and modification times show.
    package static func content(_ fingerprint: [UInt8]) -> ArraySlice<UInt8> { fingerprint.prefix(16) }

    /// Whether two fingerprints of a directory show that something below it was created, removed or written.
    ///
    /// The change times count as those of a single file do, see ``Difference``.
    static func differ(_ old: [UInt8], _ new: [UInt8], _ writing: Difference.Writing) -> Bool {
        if content(old) != content(new) { return true }
        let isSameAttributes = old.dropLast(8) == new.dropLast(8)
        return old != new && (writing == .certain || writing == .unwatched && isSameAttributes)
    }

    private static func words(_ entry: Snapshot) -> [UInt64] {
        let type: UInt64 =
            switch entry.type {
            case .file: 0
            case .directory: 1
            case .symlink: 2
            case .other: 3
            }
        return [
            UInt64(entry.identity.deviceMajor) << 32 | UInt64(entry.identity.deviceMinor), entry.identity.inode,
            UInt64(bitPattern: entry.identity.birth), type, entry.size, UInt64(bitPattern: entry.modified.seconds),
            UInt64(entry.modified.nanoseconds),
        ]
    }

    /// Returns FNV-1a over the path.
    private static func hash(_ path: PathBytes, seed: UInt64) -> UInt64 {
        var sum = seed
        for byte in path.bytes { sum = (sum ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return sum
    }

    /// Combines a checksum with other values by the finaliser of SplitMix64.
    private static func mixed(_ words: [UInt64], into start: UInt64) -> UInt64 {
        var sum = start
        for word in words {
            sum ^= word
            sum = (sum ^ (sum >> 30)) &* 0xBF58_476D_1CE4_E5B9
            sum = (sum ^ (sum >> 27)) &* 0x94D0_49BB_1331_11EB
            sum ^= sum >> 31
        }
        return sum
    }
}

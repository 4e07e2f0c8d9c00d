package import FileEvents
import Glibc
import Rules
import Synchronization

/// Makes the empty folder that each attempt works in, and removes it with all that is left there.
///
/// They lie in a folder of this Alight alone, so that the next one can tell which are abandoned.
package struct ScratchFolders: Sendable {
    /// The folder that holds them.
    package let base: PathBytes
    private let own: OwnFolder
    private let spare = SpareFolders()

    /// - Parameter base: An absolute path. It is made when it is first needed, of
    ///   mode 0700; its parent has to exist.
    package init(base: PathBytes) {
        self.base = base
        own = OwnFolder(in: base)
    }

    /// The usual place: `$XDG_RUNTIME_DIR/alight`, as root `/run/alight`, else `alight-UID` for temporary files.
    package init(runtimeFolder: PathBytes?, temporaryFolder: PathBytes?, user: UInt32) {
        if user == 0 {
            self.init(base: "/run/alight")
        } else if let runtimeFolder, !runtimeFolder.bytes.isEmpty {
            self.init(base: runtimeFolder.appending("alight"))
        } else {
            self.init(base: (temporaryFolder ?? "/tmp").appending("alight-\(user)"))
        }
    }

    /// Gives an empty folder of mode 0700, which nobody else has until ``remove(_:)``.
    ///
    /// It belongs to the user, who can then also go through the folder that it is in, but not read that.
    func make(user: ProgramUser? = nil) throws(ScratchFailure) -> PathBytes {
        if user == nil, let folder = spare.take(remove: { try? destroy($0) }) { return folder }
        let mode: mode_t = user == nil ? 0o700 : 0o711
        try prepareBase(mode: mode)
        let folder = try own.path(mode: mode).appending(spare.nextName())
        guard folder.withCString({ mkdir($0, 0o700) }) == 0 else { throw ScratchFailure(errno, "make", folder) }
        if let user {
            guard folder.withCString({ lchown($0, user.uid, user.gid) }) == 0 else {
                throw ScratchFailure(errno, "give '\(user.text)'", folder)
            }
        } else {
            spare.add(folder)
        }
        return folder
    }

    /// Removes what an attempt of an older version that was cut off has left, if there is anything.
    package func discard(for job: String) {
        guard JobID(job).isWellFormed else { return }
        let folder = base.appending(job.replacing("/", with: "_"))
        guard folder.withCString({ access($0, F_OK) }) == 0, (try? prepareBase()) != nil else { return }
        try? remove(folder)
    }

    /// Gives the folder of this Alight up, when nothing is run any more.
    func giveUp() {
        for folder in spare.takeAll() { try? destroy(folder) }
        own.giveUp()
    }

    /// Removes the folders of those who were killed.
    package func removeAbandoned() {
        guard base.withCString({ access($0, F_OK) }) == 0, (try? prepareBase()) != nil else { return }
        let descriptor = base.withCString { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        for name in Remover.names(in: descriptor) {
            if OwnFolder.isOne(name) {
                let folder = base.appending(name.bytes)
                let lock = OwnFolder.lock(folder)
                guard lock >= 0 else { continue }
                try? remove(folder)
                close(lock)
                continue
            }
            // As older versions called them.
            let words = String(decoding: name.bytes, as: UTF8.self).split(separator: "-")
            guard words.count == 3, words[0] == "serve", let process = pid_t(words[1]), process > 0,
                kill(process, 0) != 0, errno == ESRCH
            else { continue }
            try? remove(base.appending(name.bytes))
        }
    }

    /// Removes a folder that was made in ``base``, if it can be removed.
    package func discard(folder: PathBytes) { try? remove(folder) }

    /// A folder such as an attempt would get.
    var example: PathBytes { (own.made ?? base).appending(Array("1".utf8)) }

    /// Takes a folder back: removes it and everything below it, or keeps it for another attempt if it was left as it was.
    ///
    /// Links are removed, not followed.
    func remove(_ folder: PathBytes) throws(ScratchFailure) {
        if !spare.give(folder, isEmpty: Self.isEmpty) { try destroy(folder) }
    }

    private func destroy(_ folder: PathBytes) throws(ScratchFailure) {
        let descriptor = folder.withCString { open($0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
        if descriptor >= 0 {
            defer { close(descriptor) }
            var remover = Remover(root: descriptor)
            while remover.hasMore {
                remover.hasMore = false
                remover.empty(descriptor, depth: 0)
            }
        }
        guard folder.withCString({ unlinkat(AT_FDCWD, $0, descriptor >= 0 ? AT_REMOVEDIR : 0) }) == 0 || errno == ENOENT
        else { throw ScratchFailure(errno, "remove", folder) }
    }

    private static func isEmpty(_ folder: PathBytes) -> Bool {
        let descriptor = folder.withCString { open($0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return Remover.names(in: descriptor).isEmpty
    }

    /// Nobody else may own or read the folder: in `/tmp` another user could have made it first.
    ///
    /// Once others may go through it, it stays so: what is in it is closed by itself.
    private func prepareBase(mode: mode_t = 0o700) throws(ScratchFailure) {
        if base.withCString({ mkdir($0, mode) }) != 0, errno != EEXIST { throw ScratchFailure(errno, "make", base) }
        var status = stat()
        guard base.withCString({ lstat($0, &status) }) == 0 else { throw ScratchFailure(errno, "look at", base) }
        guard status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid() else {
            throw ScratchFailure(EPERM, "use", base)
        }
        let present = status.st_mode & 0o777
        let wanted = present == 0o711 ? present : mode
        if present != wanted { _ = base.withCString { chmod($0, wanted) } }
    }

    /// Empties folders, with a descriptor for each level.
    private struct Remover {
        /// Levels below the root; a deeper folder is moved up to the root and emptied in another round.
        private static let depth = 32

        let root: Int32
        var hasMore = true
        private var moved = 0

        init(root: Int32) { self.root = root }

        mutating func empty(_ folder: Int32, depth: Int) {
            // A program may have taken away its own right to write here.
            fchmod(folder, 0o700)
            for name in Self.names(in: folder) {
                if name.withCString({ unlinkat(folder, $0, 0) }) == 0 { continue }
                guard errno == EISDIR || errno == EPERM else { continue }
                if depth >= Self.depth {
                    moved += 1
                    let place = PathBytes(".moved-\(moved)")
                    if name.withCString({ from in place.withCString { renameat(folder, from, root, $0) } }) == 0 {
                        hasMore = true
                    }
                    continue
                }
                let inner = open(name, in: folder)
                guard inner >= 0 else { continue }
                empty(inner, depth: depth + 1)
                close(inner)
                _ = name.withCString { unlinkat(folder, $0, AT_REMOVEDIR) }
            }
        }

        private func open(_ name: PathBytes, in folder: Int32) -> Int32 {
            let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
            let descriptor = name.withCString { openat(folder, $0, flags) }
            guard descriptor < 0, errno == EACCES else { return descriptor }
            _ = name.withCString { fchmodat(folder, $0, 0o700, 0) }
            return name.withCString { openat(folder, $0, flags) }
        }

        static func names(in folder: Int32) -> [PathBytes] {
            // A second descriptor, because closedir closes the one it was given.
            let copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            guard copy >= 0, let stream = fdopendir(copy) else { return [] }
            defer { closedir(stream) }
            var names: [PathBytes] = []
            while let entry = readdir(stream) {
                // Not through Swift's tuple of d_name, which would copy bytes beyond the entry.
                let offset = MemoryLayout<dirent>.offset(of: \.d_name) ?? 0
                let start = UnsafeRawPointer(entry).advanced(by: offset).assumingMemoryBound(to: UInt8.self)
                let count = strlen(UnsafePointer(OpaquePointer(start)))
                let name = PathBytes(UnsafeBufferPointer(start: start, count: count))
                if name != "." && name != ".." { names.append(name) }
            }
            return names
        }
    }
}

/// A folder that could not be made or removed.
struct ScratchFailure: Error {
    var message: String

    init(_ error: Int32, _ verb: String, _ folder: PathBytes) {
        message = "cannot \(verb) the scratch folder '\(folder)': \(String(cString: strerror(error)))"
    }
}

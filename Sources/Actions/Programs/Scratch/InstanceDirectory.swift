import Glibc
import Synchronization
import System

/// The directory of one Alight process in the shared base directory; its lock shows others that the process lives.
///
/// The lock is released with the process, however that exits. A process id alone would not show it, since another
/// process may have the id by now, or one in another namespace.
struct InstanceDirectory {
    private let base: PathBytes
    let path: PathBytes
    private var mode: mode_t
    private let lock: OpenFile
    private static let instances = Atomic(0)

    /// Creates and locks a directory in the base directory.
    ///
    /// - Parameters:
    ///   - base: The base directory, which is created if needed.
    ///   - journal: The journal of the jobs; nil if it is in memory.
    ///   - mode: The permissions of both.
    /// - Returns: The directory.
    /// - Throws: The reason why it cannot be created.
    static func make(
        in base: PathBytes, for journal: PathBytes?, mode: mode_t
    ) throws(ScratchFailure) -> InstanceDirectory {
        try prepare(base, mode: mode)
        while true {
            let number = instances.add(1, ordering: .relaxed).newValue
            let path = base.appending("run-\(getpid())-\(number)")
            guard path.withCString({ mkdir($0, mode) }) == 0 else {
                // A directory with the same number, from another namespace or left behind.
                if errno == EEXIST { continue }
                throw ScratchFailure(errno, "create", path)
            }
            do throws(SystemError) {
                let lock = try Self.lock(path)
                // The umask does not apply to it.
                _ = path.withCString { chmod($0, mode) }
                _ = journal?.withCString { target in
                    path.appending(journalName).withCString { symlink(target, $0) }
                }
                return InstanceDirectory(base: base, path: path, mode: mode, lock: lock)
            } catch {
                // Another process considered it abandoned before it was locked.
                if error.errno == ENOENT || error.errno == EWOULDBLOCK { continue }
                throw ScratchFailure(error.errno, "lock", path)
            }
        }
    }

    /// Lets other users traverse it, and the base directory.
    mutating func openToOthers() {
        guard mode != 0o711 else { return }
        mode = 0o711
        for path in [base, path] { _ = path.withCString { chmod($0, mode) } }
    }

    /// Creates the base directory if needed, and makes sure that no other user owns or can read it: in `/tmp` another
    /// user could have created it first.
    ///
    /// Once other users may traverse it, it stays so: each directory in it protects itself.
    static func prepare(_ base: PathBytes, mode: mode_t = 0o700) throws(ScratchFailure) {
        if base.withCString({ mkdir($0, mode) }) != 0, errno != EEXIST { throw ScratchFailure(errno, "create", base) }
        var status = stat()
        guard base.withCString({ lstat($0, &status) }) == 0 else { throw ScratchFailure(errno, "stat", base) }
        guard status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid() else {
            throw ScratchFailure(EPERM, "use", base)
        }
        let present = status.st_mode & 0o777
        if present != mode, present != 0o711 { _ = base.withCString { chmod($0, mode) } }
    }

    /// The link to the journal of the jobs.
    private static let journalName = "journal"

    /// Returns the journal of the jobs whose scratch directories are in the directory; nil if it was in memory.
    static func journal(of directory: PathBytes) -> PathBytes? {
        KernelFileSystem().target(of: directory.appending(journalName))
    }

    /// Returns whether the name is that of an Alight process's directory.
    static func isOne(_ name: PathBytes) -> Bool {
        let words = String(decoding: name.bytes, as: UTF8.self).split(separator: "-", omittingEmptySubsequences: false)
        return words.count == 3 && words[0] == "run" && Int(words[1]) != nil && Int(words[2]) != nil
    }

    /// Locks a directory that still exists, until the returned object is released.
    ///
    /// - Throws: `ENOENT` when it is gone, `EWOULDBLOCK` when another process has locked it.
    static func lock(_ path: PathBytes) throws(SystemError) -> OpenFile {
        let descriptor = path.withCString { open($0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
        let directory = try OpenFile(opened: descriptor >= 0 ? descriptor : -errno)
        let error = FileLock.acquire(descriptor) { false }
        guard error == 0 else { throw SystemError(errno: error) }
        // It may have been removed between open and lock.
        guard try directory.snapshot().identity == KernelFileSystem().identity(of: path) else {
            throw SystemError(errno: ENOENT)
        }
        return directory
    }
}

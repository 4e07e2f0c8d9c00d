import CAlightLinux
import Glibc
import Synchronization
import System

/// The directory of one Alight process in the shared base directory; its lock shows others that the process lives.
///
/// The lock is released with the process, however that exits. A process id alone would not show it, since another
/// process may have the id by now, or one in another namespace.
final class InstanceDirectory: Sendable {
    private struct Made {
        var base: PathBytes
        var path: PathBytes
        /// The descriptor of its lock.
        var lock: Int32
        var mode: mode_t
    }

    private struct State {
        /// The directory, once it has been created.
        var current: Made?
        /// Earlier ones that still exist.
        var earlier: [Made] = []
        /// Empty directories in the current one that no attempt uses.
        var spare: [PathBytes] = []
    }

    private let directories: RuntimeDirectories
    /// The journal of the jobs; nil if it is in memory.
    private let journal: PathBytes?
    private let state = Mutex(State())
    /// The number of scratch directories that were created in it.
    let count = Atomic(0)
    private static let instances = Atomic(0)
    private static let mostSpare = 16

    init(in directories: RuntimeDirectories, journal: PathBytes?) {
        (self.directories, self.journal) = (directories, journal)
    }

    deinit { remove() }

    /// Returns the directory, which is created and locked by the first call; others can traverse it if the mode allows
    /// that.
    ///
    /// - Throws: The reason why it cannot be created.
    func path(mode: mode_t) throws(ScratchFailure) -> PathBytes {
        try state.withLock { state throws(ScratchFailure) in
            if let made = state.current {
                if mode == 0o711, made.mode != mode {
                    for path in [made.base, made.path] { _ = path.withCString { chmod($0, mode) } }
                    state.current?.mode = mode
                }
                return made.path
            }
            let made = try directories.first { base throws(ScratchFailure) in try Self.make(in: base, mode: mode) }
            if let journal {
                _ = journal.withCString { target in
                    made.path.appending(Self.journalName).withCString { symlink(target, $0) }
                }
            }
            state.current = made
            return made.path
        }
    }

    /// The directory, if it has been created.
    var made: PathBytes? { state.withLock { $0.current?.path } }

    /// Leaves the given directory, so that another is created; has no effect if that has already happened.
    func leave(_ path: PathBytes) {
        state.withLock { state in
            guard let left = state.current, left.path == path else { return }
            (state.current, state.spare) = (nil, [])
            if path.withCString({ access($0, F_OK) }) == 0 { state.earlier.append(left) } else { close(left.lock) }
        }
    }

    /// Whether the directory is in the current one, and few are spare.
    func mayKeep(_ directory: PathBytes) -> Bool {
        state.withLock { $0.spare.count < Self.mostSpare && $0.current?.path == directory.parent }
    }

    /// Keeps an empty directory for another attempt; returns true.
    func keep(_ directory: PathBytes) -> Bool {
        state.withLock { $0.spare.append(directory) }
        return true
    }

    /// Renames a spare directory; returns false if there is none.
    func renameSpare(to directory: PathBytes, in parent: PathBytes) -> Bool {
        let spare = state.withLock { $0.current?.path == parent ? $0.spare.popLast() : nil }
        guard let spare else { return false }
        let error = spare.withCString { from in
            directory.withCString { cal_rename(AT_FDCWD, from, AT_FDCWD, $0, CAL_RENAME_NEW) }
        }
        if error != 0 { _ = DirectoryRemoval.removeEmpty(spare) }
        return error == 0
    }

    /// Removes the directory with everything that programs have left in it.
    func remove() {
        state.withLock { state in
            for made in state.earlier + [state.current].compactMap(\.self) {
                try? ScratchDirectories.remove(made.path)
                close(made.lock)
            }
            state = State()
        }
    }

    private static func make(in base: PathBytes, mode: mode_t) throws(ScratchFailure) -> Made {
        try prepare(base, mode: mode)
        while true {
            let number = instances.add(1, ordering: .relaxed).newValue
            let path = base.appending("run-\(getpid())-\(number)")
            guard path.withCString({ mkdir($0, mode) }) == 0 else {
                // A directory with the same number, from another namespace or left behind.
                if errno == EEXIST { continue }
                throw ScratchFailure(errno, "create", path)
            }
            let descriptor = lock(path)
            guard descriptor >= 0 else {
                // Another process considered it abandoned before it was locked.
                if errno == ENOENT || errno == EWOULDBLOCK { continue }
                throw ScratchFailure(errno, "lock", path)
            }
            // The umask does not apply to it.
            _ = path.withCString { chmod($0, mode) }
            return Made(base: base, path: path, lock: descriptor, mode: mode)
        }
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
        let wanted = present == 0o711 ? present : mode
        if present != wanted { _ = base.withCString { chmod($0, wanted) } }
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

    /// Locks a directory that still exists; returns -1, with `errno`, when it is gone or another process has locked it.
    static func lock(_ path: PathBytes) -> Int32 {
        let descriptor = path.withCString { open($0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
        guard descriptor >= 0 else { return -1 }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let error = errno
            close(descriptor)
            errno = error
            return -1
        }
        // It may have been removed between open and lock.
        var (opened, present) = (stat(), stat())
        guard fstat(descriptor, &opened) == 0, path.withCString({ lstat($0, &present) }) == 0,
            opened.st_dev == present.st_dev, opened.st_ino == present.st_ino
        else {
            close(descriptor)
            errno = ENOENT
            return -1
        }
        return descriptor
    }
}

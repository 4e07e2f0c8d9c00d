import Glibc
import Synchronization
import System

/// The directory of one Alight process in the shared base directory; its lock shows others that the process lives.
///
/// The lock is released with the process, however that exits. A process id alone would not show it, since another
/// process may have the id by now, or one in another namespace.
final class InstanceDirectory: Sendable {
    private let base: PathBytes
    /// The directory and the descriptor of its lock, once it has been created.
    private let own = Mutex<(path: PathBytes, lock: Int32)?>(nil)
    /// The number of scratch directories that were created in it.
    let count = Atomic(0)
    private static let instances = Atomic(0)

    init(in base: PathBytes) { self.base = base }

    deinit { remove() }

    /// Returns the directory, which is created and locked by the first call; others can traverse it if the mode allows
    /// that.
    ///
    /// - Throws: The reason why it cannot be created.
    func path(mode: mode_t) throws(ScratchFailure) -> PathBytes {
        try own.withLock { own throws(ScratchFailure) in
            if let path = own?.path {
                if mode == 0o711 { _ = path.withCString { chmod($0, mode) } }
                return path
            }
            let made = try Self.make(in: base, mode: mode)
            own = made
            return made.path
        }
    }

    /// The directory, if it has been created.
    var made: PathBytes? { own.withLock { $0?.path } }

    /// Discards the given directory, which has gone, so that another is created; has no effect if that has already
    /// happened.
    func forget(_ path: PathBytes) {
        own.withLock { own in
            guard let lost = own, lost.path == path else { return }
            close(lost.lock)
            own = nil
        }
    }

    /// Removes the directory with everything that programs have left in it.
    func remove() {
        own.withLock { own in
            guard let (path, lock) = own else { return }
            try? ScratchDirectories.remove(path)
            close(lock)
            own = nil
        }
    }

    private static func make(
        in base: PathBytes, mode: mode_t
    ) throws(ScratchFailure) -> (path: PathBytes, lock: Int32) {
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
            return (path, descriptor)
        }
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

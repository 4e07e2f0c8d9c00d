import Glibc
import Synchronization
import System

/// The directory of one Alight process in the shared base directory; its lock shows others that the process lives.
///
/// The lock is released with the process, however that exits. A process id alone would not show it, since another
/// process may have the id by now, or one in another namespace.
final class InstanceDirectory: Sendable {
    private struct State: Sendable {
        var path: PathBytes?
        var lock: Int32 = -1
    }

    private let base: PathBytes
    private let state = Mutex(State())
    private static let count = Atomic(0)

    init(in base: PathBytes) { self.base = base }

    deinit { giveUp() }

    /// Returns the directory, which is created and locked by the first call; others can traverse it if the mode allows
    /// that.
    ///
    /// - Throws: The reason why it cannot be created.
    func path(mode: mode_t) throws(ScratchFailure) -> PathBytes {
        let result = state.withLock { state -> Result<PathBytes, ScratchFailure> in
            if let path = state.path {
                if mode == 0o711 { _ = path.withCString { chmod($0, mode) } }
                return .success(path)
            }
            return Self.make(in: base, mode: mode, &state)
        }
        return try result.get()
    }

    /// The directory, if it has been created.
    var made: PathBytes? { state.withLock { $0.path } }

    /// Discards the given directory, which has gone, so that another is created; has no effect if that has already
    /// happened.
    func forget(_ path: PathBytes) {
        state.withLock { state in
            guard state.path == path else { return }
            close(state.lock)
            state.path = nil
            state.lock = -1
        }
    }

    /// Removes the directory with everything that programs have left in it.
    func giveUp() {
        state.withLock { state in
            guard let path = state.path else { return }
            try? DirectoryRemoval.remove(path)
            close(state.lock)
            state.path = nil
            state.lock = -1
        }
    }

    private static func make(
        in base: PathBytes, mode: mode_t, _ state: inout State
    ) -> Result<PathBytes, ScratchFailure> {
        while true {
            let number = count.add(1, ordering: .relaxed).newValue
            let path = base.appending("\(prefix)\(getpid())-\(number)")
            guard path.withCString({ mkdir($0, mode) }) == 0 else {
                // A directory with the same number, from another namespace or left behind.
                if errno == EEXIST { continue }
                return .failure(ScratchFailure(errno, "create", path))
            }
            let descriptor = lock(path)
            guard descriptor >= 0 else {
                // Another process considered it abandoned before it was locked.
                if errno == ENOENT || errno == EWOULDBLOCK { continue }
                return .failure(ScratchFailure(errno, "lock", path))
            }
            // The umask does not apply to it.
            _ = path.withCString { chmod($0, mode) }
            state.path = path
            state.lock = descriptor
            return .success(path)
        }
    }

    private static let prefix = "run-"

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

import FileEvents
import Glibc
import Synchronization
import System

/// The folder of one Alight in the folder that all share, by whose lock others see that it lives.
///
/// The lock goes with the process, however that ends; a process id alone would
/// say nothing, since another process may have it by now, or one in another namespace.
final class OwnFolder: Sendable {
    private struct State: Sendable {
        var path: PathBytes?
        var lock: Int32 = -1
    }

    private let base: PathBytes
    private let state = Mutex(State())
    private static let count = Atomic(0)

    init(in base: PathBytes) { self.base = base }

    deinit { giveUp() }

    /// The folder, which is made and locked when it is first asked for; others can go through it if the mode says so.
    ///
    /// - Throws: Why it can't be made.
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

    /// The folder, if it has been made.
    var made: PathBytes? { state.withLock { $0.path } }

    /// Has the folder made anew if it is still that one, since it has gone.
    func forget(_ path: PathBytes) {
        state.withLock { state in
            guard state.path == path else { return }
            close(state.lock)
            state.path = nil
            state.lock = -1
        }
    }

    /// Removes the folder with all that programs have left in it.
    func giveUp() {
        state.withLock { state in
            guard let path = state.path else { return }
            try? FolderRemoval.remove(path)
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
                // One of the same number, in another namespace or left behind.
                if errno == EEXIST { continue }
                return .failure(ScratchFailure(errno, "make", path))
            }
            let descriptor = lock(path)
            guard descriptor >= 0 else {
                // Somebody has taken it for abandoned in the moment before it was locked.
                if errno == ENOENT || errno == EWOULDBLOCK { continue }
                return .failure(ScratchFailure(errno, "lock", path))
            }
            // The umask is none of its business.
            _ = path.withCString { chmod($0, mode) }
            state.path = path
            state.lock = descriptor
            return .success(path)
        }
    }

    private static let prefix = "run-"

    /// Whether a folder of that name is one of an Alight.
    static func isOne(_ name: PathBytes) -> Bool {
        let words = String(decoding: name.bytes, as: UTF8.self).split(separator: "-", omittingEmptySubsequences: false)
        return words.count == 3 && words[0] == "run" && Int(words[1]) != nil && Int(words[2]) != nil
    }

    /// Locks a folder that is still there; -1, with `errno`, when it is gone, or another has locked it.
    static func lock(_ path: PathBytes) -> Int32 {
        let descriptor = path.withCString { open($0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
        guard descriptor >= 0 else { return -1 }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let error = errno
            close(descriptor)
            errno = error
            return -1
        }
        // Between the opening and the locking it can have been removed.
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

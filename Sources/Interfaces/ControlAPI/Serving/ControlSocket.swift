import CAlightLinux
import Glibc
package import System

/// An error that prevents a control socket.
package struct ControlProblem: Error, Sendable, Hashable {
    package var message: String
    package var help: String
    /// Whether another instance listens there.
    package var isTaken = false

    package init(_ message: String, help: String, isTaken: Bool = false) {
        (self.message, self.help, self.isTaken) = (message, help, isTaken)
    }
}

/// The Unix socket of a running instance, in a directory that other users cannot write to.
package final class ControlSocket: Sendable {
    package let path: PathBytes
    let descriptor: Int32
    /// The identity of the file, so that no other file is removed in its place.
    private let identity: FileIdentity?
    /// An inotify instance that becomes readable when the file or its directory may have been removed; negative if there
    /// is none.
    let watch: Int32

    /// The maximum length of a socket's name; the socket is addressed through the descriptor of its directory.
    private static let longestName = 60

    /// Creates the socket, replacing one at which no process listens.
    ///
    /// - Parameter path: The path; its directory is created if it does not exist.
    /// - Throws: A `ControlProblem` when it cannot be created. A socket at which a process listens is not replaced.
    package init(at path: PathBytes) throws(ControlProblem) {
        self.path = path
        let directory = try Self.openOwnDirectory(path.parent)
        defer { close(directory) }
        // Two instances that start at the same time must not mistake each other's new socket for a stale one.
        guard Self.lock(directory) else {
            throw ControlProblem(
                "the directory '\(path.parent)' of the control socket is locked by another process",
                help: "stop the process that holds the lock (see 'lslocks'), or name a socket in another directory "
                    + "with --control")
        }
        let name = PathBytes(path.lastComponent)
        guard name.bytes.count <= Self.longestName, !name.bytes.isEmpty else {
            throw ControlProblem(
                "invalid socket name '\(path)'", help: "use a name of at most \(Self.longestName) bytes")
        }
        try Self.removeStale(name, in: directory, path)
        let watch = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
        if watch >= 0 {
            let changes = IN_DELETE_SELF | IN_MOVE_SELF | IN_DELETE | IN_MOVED_FROM
            _ = cal_watch_open(watch, directory, UInt32(changes))
        }
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Self.flags, 0)
        // Set before the socket has a name, so that it is never accessible to other users.
        guard descriptor >= 0, fchmod(descriptor, 0o600) == 0,
            Self.withAddress(of: name, in: directory, { bind(descriptor, $0, $1) }) == 0,
            listen(descriptor, 64) == 0
        else {
            let error = errno
            close(descriptor)
            close(watch)
            throw Self.failure(path, error)
        }
        _ = name.withCString { fchmodat(directory, $0, 0o600, 0) }
        (self.descriptor, self.watch) = (descriptor, watch)
        identity = KernelFileSystem().identity(of: path)
    }

    /// Close-on-exec, and non-blocking.
    private static let flags = Int32(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)

    /// Whether the file is still this socket's.
    var isPresent: Bool { identity != nil && KernelFileSystem().identity(of: path) == identity }

    /// Whether the file or its directory may have been removed since the last call.
    var hasNews: Bool {
        var bytes = [UInt8](repeating: 0, count: 4096)
        var hasNews = false
        while read(watch, &bytes, bytes.count) > 0 { hasNews = true }
        return hasNews
    }

    /// Removes the file, if it is still this socket's, and stops listening.
    func end() {
        if isPresent { _ = path.withCString { unlink($0) } }
        close(descriptor)
        close(watch)
    }

    // MARK: State

    /// The state of a socket.
    private enum State {
        case absent
        /// A process listens.
        case live
        /// No process listens.
        case stale
        /// It is not a socket, or cannot be accessed.
        case other(errno: Int32)
    }

    private static func state(of name: PathBytes, in directory: Int32) -> State {
        var status = stat()
        guard name.withCString({ fstatat(directory, $0, &status, AT_SYMLINK_NOFOLLOW) }) == 0 else {
            return errno == ENOENT ? .absent : .other(errno: errno)
        }
        guard status.st_mode & S_IFMT == S_IFSOCK else { return .other(errno: ENOTSOCK) }
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | flags, 0)
        guard descriptor >= 0 else { return .other(errno: errno) }
        defer { close(descriptor) }
        guard withAddress(of: name, in: directory, { connect(descriptor, $0, $1) }) != 0 else { return .live }
        return switch errno {
        case ECONNREFUSED: .stale
        // Its listen backlog is full.
        case EAGAIN: .live
        case ENOENT: .absent
        default: .other(errno: errno)
        }
    }

    private static func removeStale(_ name: PathBytes, in directory: Int32, _ path: PathBytes) throws(ControlProblem) {
        switch state(of: name, in: directory) {
        case .absent: return
        case .stale: _ = name.withCString { unlinkat(directory, $0, 0) }
        case .live:
            throw ControlProblem(
                "another instance listens at '\(path)'", help: "name another socket with --control", isTaken: true)
        case .other(let error) where error == ENOTSOCK:
            throw ControlProblem("'\(path)' is not a socket", help: "remove it, or name another socket with --control")
        case .other(let error): throw failure(path, error)
        }
    }

    // MARK: Directory

    private static func openDirectory(_ path: PathBytes) -> Int32 {
        path.withCString { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
    }

    /// Opens the directory, and creates it if it does not exist.
    private static func openOwnDirectory(_ path: PathBytes) throws(ControlProblem) -> Int32 {
        if path.withCString({ mkdir($0, 0o700) }) != 0, errno != EEXIST { throw failure(path, errno) }
        let directory = openDirectory(path)
        var status = stat()
        guard directory >= 0, fstat(directory, &status) == 0 else {
            let error = errno
            if directory >= 0 { close(directory) }
            throw failure(path, error)
        }
        // A user who may write there can replace the socket; in a sticky directory, only the owner can.
        let isMine = status.st_uid == geteuid() || status.st_uid == 0
        let isOpen = status.st_mode & 0o022 != 0 && status.st_mode & S_ISVTX == 0
        guard isMine, !isOpen else {
            close(directory)
            throw ControlProblem(
                "other users may write to the directory '\(path)' of the control socket",
                help: "chmod 0700 it, or name a socket in another directory with --control")
        }
        return directory
    }

    /// Locks an open directory if it supports that; returns false if another process holds the lock for 2 s.
    ///
    /// Any user who may read a directory may lock it, so the wait is limited: a lock must not block the start.
    private static func lock(_ directory: Int32) -> Bool {
        let deadline = ContinuousClock.now + .seconds(2)
        return FileLock.acquire(directory) { .now < deadline } != EWOULDBLOCK
    }

    private static func failure(_ path: PathBytes, _ error: Int32) -> ControlProblem {
        ControlProblem(
            "cannot create the control socket '\(path)': \(SystemError(errno: error))",
            help: "name another socket with --control, or turn it off with --no-control")
    }

    /// Calls the body with the address of a name in an open directory, regardless of the length of the directory's
    /// path.
    static func withAddress<Answer>(
        of name: PathBytes, in directory: Int32, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Answer
    ) -> Answer {
        let text = PathBytes("/proc/self/fd/\(directory)").appending(name.bytes)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { buffer in
            for (index, byte) in text.bytes.prefix(buffer.count - 1).enumerated() { buffer[index] = byte }
        }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }

    /// Returns the path that an instance uses if the default socket is in use.
    package static func excluding(_ path: PathBytes, process: Int32) -> PathBytes {
        path.parent.appending("control-\(process).sock")
    }

    /// Returns the sockets beside the default one at which a process listens; optionally removes stale ones first.
    package static func otherSockets(excluding path: PathBytes, removingStale: Bool = false) -> [PathBytes] {
        let directory = openDirectory(path.parent)
        guard directory >= 0 else { return [] }
        defer { close(directory) }
        let mayRemove = removingStale && lock(directory)
        var found: [PathBytes] = []
        for name in (try? KernelFileSystem().names(following: ".", in: directory)) ?? []
        where name.bytes.starts(with: Array("control-".utf8)) && name.bytes.suffix(5).elementsEqual(".sock".utf8) {
            switch state(of: name, in: directory) {
            case .live: found.append(path.parent.appending(name.bytes))
            case .stale where mayRemove: _ = name.withCString { unlinkat(directory, $0, 0) }
            default: break
            }
        }
        return found.sorted()
    }

    /// Connects to a socket.
    ///
    /// A stopped process does not accept connections: they fill the listen backlog, and further ones have to wait.
    ///
    /// - Parameters:
    ///   - path: The socket.
    ///   - timeout: The timeout for that in seconds; with 0, the descriptor is non-blocking.
    /// - Returns: The descriptor, or a negative errno: `-EAGAIN` when the connection was not queued in that time.
    package static func connected(to path: PathBytes, timeout: Int = 10) -> Int32 {
        let directory = openDirectory(path.parent)
        guard directory >= 0 else { return -errno }
        defer { close(directory) }
        let flags = timeout > 0 ? Int32(SOCK_CLOEXEC.rawValue) : flags
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | flags, 0)
        guard descriptor >= 0 else { return -errno }
        var limit = timeval(tv_sec: timeout, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        guard withAddress(of: PathBytes(path.lastComponent), in: directory, { connect(descriptor, $0, $1) }) == 0 else {
            let error = errno
            close(descriptor)
            return -error
        }
        return descriptor
    }
}

import CLibMagic
import Glibc
import Synchronization

/// Detects the type of a file's content with libmagic(3).
package enum ContentType {
    /// The result of a detection.
    package enum Finding: Sendable, Hashable {
        /// A type such as `application/pdf`, in lower case and without parameters.
        case type(String)
        /// The file does not exist.
        case absent
        /// The path is not a regular file, so it has no content to inspect.
        case notRegular
        case unreadable(errno: Int32)
        /// The library failed for a reason of its own.
        case failed(String)
    }

    /// Reads the first bytes of a regular file, at most 1 MiB, and more if a format requires it.
    ///
    /// Blocks for as long as the file system does. The access time may change. Callable from any thread.
    ///
    /// - Parameter descriptor: The file, opened for reading without following a link or waiting for a pipe, or the
    ///   negative errno of opening it. The descriptor is closed.
    /// - Returns: The type, or the reason why there is none.
    package static func find(opened descriptor: Int32) -> Finding {
        guard descriptor >= 0 else {
            switch -descriptor {
            case ENOENT, ENOTDIR: return .absent
            // A symbolic link, or a socket.
            case ELOOP, ENXIO: return .notRegular
            case let error: return .unreadable(errno: error)
            }
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return .unreadable(errno: errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { return .notRegular }
        guard status.st_size > 0 else { return .type(empty) }
        // Separates files that cannot be read from files that the library cannot identify.
        var byte: UInt8 = 0
        guard pread(descriptor, &byte, 1, 0) >= 0 else { return .unreadable(errno: errno) }
        return MagicCookies.shared.type(of: descriptor)
    }

    /// Locates the database.
    ///
    /// Call this before other threads exist.
    package static func prepare() { _ = MagicCookies.database }

    /// The type that libmagic reports for an empty file.
    package static let empty = "inode/x-empty"
}

/// Open handles of libmagic, each used by one thread at a time.
///
/// Opening a handle reads the whole database, so handles are reused: there are as many as there were concurrent
/// threads.
private final class MagicCookies: Sendable {
    static let shared = MagicCookies()

    /// A handle may move between threads, but two threads must not use it at the same time.
    private struct Cookie: @unchecked Sendable {
        let handle: magic_t
    }

    private enum Opening {
        case opened(Cookie)
        case failed(String)
    }

    private let idle = Mutex<[Cookie]>([])
    /// The number of bytes of a file that are read at once: the default in most versions of the library.
    private static let mostBytes = 1 << 20

    /// The database that libmagic was built with, which is the same for all users.
    ///
    /// By default, libmagic would read the file in `MAGIC`, or `~/.magic`, and rules would depend on the user who runs
    /// them. It returns its own path only while that variable is unset.
    static let database: String? = {
        let name = "MAGIC"
        let chosen = getenv(name).map { String(cString: $0) }
        if chosen != nil { unsetenv(name) }
        defer { if let chosen { setenv(name, chosen, 1) } }
        // Any value but 0, which is for loading, skips the home directory.
        return magic_getpath(nil, 1).map { String(cString: $0) }
    }()

    func type(of descriptor: Int32) -> ContentType.Finding {
        let cookie: Cookie
        switch idle.withLock({ $0.popLast() }).map(Opening.opened) ?? Self.open() {
        case .opened(let opened): cookie = opened
        case .failed(let message): return .failed(message)
        }
        defer { idle.withLock { $0.append(cookie) } }
        guard let answer = magic_descriptor(cookie.handle, descriptor) else {
            let error = magic_errno(cookie.handle)
            if error != 0 { return .unreadable(errno: error) }
            return .failed(magic_error(cookie.handle).map { String(cString: $0) } ?? "no reason given")
        }
        // For a container, there may be several lines; the first is the container itself.
        let text = String(cString: answer).prefix { $0 != "\n" && $0 != ";" && $0 != "\\" }
        let type = text.filter { $0 != " " }.lowercased()
        guard type.contains("/") else { return .failed("libmagic reports '\(text)'") }
        return .type(type)
    }

    private static func open() -> Opening {
        let flags = MAGIC_MIME_TYPE | MAGIC_ERROR | MAGIC_NO_CHECK_COMPRESS | MAGIC_NO_CHECK_ELF
        guard let handle = magic_open(flags) else { return .failed("libmagic can't be opened") }
        guard magic_load(handle, database) == 0 else {
            let reason = magic_error(handle).map { String(cString: $0) } ?? "no reason given"
            magic_close(handle)
            return .failed("libmagic has no database: \(reason)")
        }
        var most = mostBytes
        magic_setparam(handle, MAGIC_PARAM_BYTES_MAX, &most)
        return .opened(Cookie(handle: handle))
    }
}

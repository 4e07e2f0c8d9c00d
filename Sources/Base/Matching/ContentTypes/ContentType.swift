import CLibMagic
import Glibc
import Synchronization

/// Finds out what a file holds, by looking at its bytes: libmagic(3).
package enum ContentType {
    /// What a look comes to.
    package enum Finding: Sendable, Hashable {
        /// A type such as `application/pdf`, in lower case and without parameters.
        case type(String)
        /// There is nothing of that name.
        case absent
        /// It is no regular file, and so has no content to look at.
        case notRegular
        case unreadable(errno: Int32)
        /// The library can't say, for a reason of its own.
        case failed(String)
    }

    /// Reads the beginning of a regular file, 1 MiB at most, and more of it where a format asks for that.
    ///
    /// It blocks for as long as the file system does. The time of the last access may change. Callable from any thread.
    ///
    /// - Parameter descriptor: The file, opened for reading without following a link or waiting for a pipe, or the
    ///   negative errno of that. It is closed.
    /// - Returns: The type, or why there is none.
    package static func find(opened descriptor: Int32) -> Finding {
        guard descriptor >= 0 else {
            switch -descriptor {
            case ENOENT, ENOTDIR: return .absent
            // A link, or a socket.
            case ELOOP, ENXIO: return .notRegular
            case let error: return .unreadable(errno: error)
            }
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return .unreadable(errno: errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { return .notRegular }
        guard status.st_size > 0 else { return .type(empty) }
        // What can't be read is told apart from what the library can't tell.
        var byte: UInt8 = 0
        guard pread(descriptor, &byte, 1, 0) >= 0 else { return .unreadable(errno: errno) }
        return MagicCookies.shared.type(of: descriptor)
    }

    /// Works out which database is read; to be called before there are other threads.
    package static func prepare() { _ = MagicCookies.database }

    /// What libmagic calls a file without a byte.
    package static let empty = "inode/x-empty"
}

/// Open handles of libmagic; each is used by one thread at a time.
///
/// Opening one reads the whole database, so they are kept: as many as there were threads at once.
private final class MagicCookies: Sendable {
    static let shared = MagicCookies()

    /// A handle may go from thread to thread, but may not be used by two at once.
    private struct Cookie: @unchecked Sendable {
        let handle: magic_t
    }

    private enum Opening {
        case opened(Cookie)
        case failed(String)
    }

    private let idle = Mutex<[Cookie]>([])
    /// As much of a file as is read at once: the library's own default in most of its versions.
    private static let mostBytes = 1 << 20

    /// The database that libmagic was built to read, which is the same for everybody.
    ///
    /// Left to itself it would read the file that `MAGIC` names, or `~/.magic`, and rules would depend on
    /// who runs them. It says where its own is only while there is no such variable.
    static let database: String? = {
        let name = "MAGIC"
        let chosen = getenv(name).map { String(cString: $0) }
        if chosen != nil { unsetenv(name) }
        defer { if let chosen { setenv(name, chosen, 1) } }
        // Anything but 0, which is for loading, leaves out the home folder.
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
            return .failed(magic_error(cookie.handle).map { String(cString: $0) } ?? "it gives no reason")
        }
        // Of a container there may be several lines, of which the first is the container itself.
        let text = String(cString: answer).prefix { $0 != "\n" && $0 != ";" && $0 != "\\" }
        let type = text.filter { $0 != " " }.lowercased()
        guard type.contains("/") else { return .failed("libmagic says '\(text)'") }
        return .type(type)
    }

    private static func open() -> Opening {
        let flags = MAGIC_MIME_TYPE | MAGIC_ERROR | MAGIC_NO_CHECK_COMPRESS | MAGIC_NO_CHECK_ELF
        guard let handle = magic_open(flags) else { return .failed("libmagic can't be opened") }
        guard magic_load(handle, database) == 0 else {
            let reason = magic_error(handle).map { String(cString: $0) } ?? "it gives no reason"
            magic_close(handle)
            return .failed("libmagic has no database: \(reason)")
        }
        var most = mostBytes
        magic_setparam(handle, MAGIC_PARAM_BYTES_MAX, &most)
        return .opened(Cookie(handle: handle))
    }
}

import CAlightLinux
import Glibc

/// The names in an open directory, without `.` and `..`, in the order of the file system.
struct DirectoryNames: ~Copyable {
    private let stream: OpaquePointer
    /// The error that stopped the listing; 0 at its end.
    private(set) var error: Int32 = 0

    /// Opens the directory without following a link.
    ///
    /// - Parameters:
    ///   - path: The directory.
    ///   - directory: The open directory that the path is relative to.
    /// - Throws: The error of opening it.
    init(_ path: PathBytes, in directory: Int32 = AT_FDCWD) throws(SystemError) {
        try self.init(opened: path.withCString { cal_open_folder(directory, $0) })
    }

    /// Takes ownership of a directory that was opened for listing; the argument is negative if opening failed with that
    /// errno.
    init(opened descriptor: Int32) throws(SystemError) {
        guard descriptor >= 0 else { throw SystemError(errno: -descriptor) }
        guard let stream = fdopendir(descriptor) else {
            let error = errno
            close(descriptor)
            throw SystemError(errno: error)
        }
        self.stream = stream
    }

    deinit { closedir(stream) }

    /// The open directory, for calls that are relative to it.
    var descriptor: Int32 { dirfd(stream) }

    /// Returns the remaining names; ``error`` shows whether they are complete.
    mutating func rest() -> [PathBytes] {
        var names: [PathBytes] = []
        while let name = next() { names.append(name) }
        return names
    }

    /// Returns the next name; nil at the end, and if reading fails.
    mutating func next() -> PathBytes? {
        while true {
            errno = 0
            guard let entry = readdir(stream) else {
                error = errno
                return nil
            }
            // The record is only as long as its name, so reading all of d_name would run over its end.
            guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { return nil }
            let start = UnsafeRawPointer(entry) + offset
            let length = strlen(start.assumingMemoryBound(to: CChar.self))
            let name = PathBytes(UnsafeRawBufferPointer(start: start, count: length))
            if name != "." && name != ".." { return name }
        }
    }
}

extension DiskProbe {
    /// Returns the names in a directory; none if it cannot be listed.
    package static func names(in folder: PathBytes) -> [PathBytes] {
        (try? names(opened: folder.withCString { cal_open_folder(AT_FDCWD, $0) })) ?? []
    }

    /// Returns the names in a directory, following links.
    package static func names(following folder: PathBytes) throws(SystemError) -> [PathBytes] {
        try names(in: AT_FDCWD, folder)
    }

    /// Returns the names in an open directory, which stays open.
    package static func names(in descriptor: Int32) throws(SystemError) -> [PathBytes] {
        try names(in: descriptor, ".")
    }

    private static func names(in directory: Int32, _ path: PathBytes) throws(SystemError) -> [PathBytes] {
        let opened = path.withCString { openat(directory, $0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        return try names(opened: opened >= 0 ? opened : -errno)
    }

    private static func names(opened descriptor: Int32) throws(SystemError) -> [PathBytes] {
        var listing = try DirectoryNames(opened: descriptor)
        return listing.rest()
    }
}

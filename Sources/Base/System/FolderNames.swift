import CAlightLinux
import Glibc

/// The names in an open folder, without `.` and `..`, in the order of the file system.
struct FolderNames: ~Copyable {
    private let stream: OpaquePointer
    /// Why the listing ended; 0 at its end.
    private(set) var error: Int32 = 0

    /// Opens the folder without following a link.
    ///
    /// - Parameters:
    ///   - path: The folder.
    ///   - directory: The open folder that the path is relative to.
    /// - Throws: The error of opening it.
    init(_ path: PathBytes, in directory: Int32 = AT_FDCWD) throws(SystemError) {
        try self.init(opened: path.withCString { cal_open_folder(directory, $0) })
    }

    /// Takes a folder that was opened for listing, or the negative errno of that.
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

    /// The open folder, for calls that are relative to it.
    var descriptor: Int32 { dirfd(stream) }

    /// The names that are left; ``error`` tells whether these are all.
    mutating func rest() -> [PathBytes] {
        var names: [PathBytes] = []
        while let name = next() { names.append(name) }
        return names
    }

    /// The next name; nil at the end, and when reading fails.
    mutating func next() -> PathBytes? {
        while true {
            errno = 0
            guard let entry = readdir(stream) else {
                error = errno
                return nil
            }
            // The record is as long as its name: reading all of d_name would run over its end.
            guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { return nil }
            let start = UnsafeRawPointer(entry) + offset
            let length = strlen(start.assumingMemoryBound(to: CChar.self))
            let name = PathBytes(UnsafeRawBufferPointer(start: start, count: length))
            if name != "." && name != ".." { return name }
        }
    }
}

extension DiskProbe {
    /// The names in a folder; none if it can't be listed.
    package static func names(in folder: PathBytes) -> [PathBytes] {
        (try? names(opened: folder.withCString { cal_open_folder(AT_FDCWD, $0) })) ?? []
    }

    /// The names in a folder, to which links may lead.
    package static func names(following folder: PathBytes) throws(SystemError) -> [PathBytes] {
        try names(in: AT_FDCWD, folder)
    }

    /// The names in an open folder, which stays open.
    package static func names(in descriptor: Int32) throws(SystemError) -> [PathBytes] {
        try names(in: descriptor, ".")
    }

    private static func names(in directory: Int32, _ path: PathBytes) throws(SystemError) -> [PathBytes] {
        let opened = path.withCString { openat(directory, $0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        return try names(opened: opened >= 0 ? opened : -errno)
    }

    private static func names(opened descriptor: Int32) throws(SystemError) -> [PathBytes] {
        var listing = try FolderNames(opened: descriptor)
        return listing.rest()
    }
}

import FileEvents
import Glibc

/// One entry of a folder.
struct FolderEntry {
    var name: [UInt8]
    var isFolder: Bool
}

/// Lists a folder, without `.` and `..`, in the order of the file system.
enum FolderListing {
    /// Calls the closure for each entry.
    ///
    /// A symbolic link to a folder is not a folder.
    ///
    /// - Returns: 0, or the errno of opening or reading the folder; what came before an error has been told.
    static func read(_ path: PathBytes, followingLink: Bool, _ body: (FolderEntry) -> Void) -> Int32 {
        let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK | (followingLink ? 0 : O_NOFOLLOW)
        let descriptor = path.withCString { open($0, flags) }
        guard descriptor >= 0 else { return errno }
        guard let stream = fdopendir(descriptor) else {
            let error = errno
            close(descriptor)
            return error
        }
        defer { closedir(stream) }
        while true {
            errno = 0
            guard let entry = readdir(stream) else { return errno }
            // The record is as long as its name: reading all of d_name would run over its end.
            guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { return EINVAL }
            let start = UnsafeRawPointer(entry) + offset
            let length = strlen(start.assumingMemoryBound(to: CChar.self))
            let name = Array(UnsafeRawBufferPointer(start: start, count: length))
            if name == [.dot] || name == [.dot, .dot] { continue }
            body(FolderEntry(name: name, isFolder: isFolder(entry, named: name, in: descriptor)))
        }
    }

    private static func isFolder(_ entry: UnsafeMutablePointer<dirent>, named name: [UInt8], in folder: Int32) -> Bool {
        if entry.pointee.d_type != UInt8(DT_UNKNOWN) { return entry.pointee.d_type == UInt8(DT_DIR) }
        var status = stat()
        let result = PathBytes(name).withCString { fstatat(folder, $0, &status, AT_SYMLINK_NOFOLLOW) }
        return result == 0 && status.st_mode & S_IFMT == S_IFDIR
    }
}

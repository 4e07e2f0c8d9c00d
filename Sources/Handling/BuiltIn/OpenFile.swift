import CAlightLinux
import FileEvents
import Glibc

/// What handlers ask of files that they have open.
enum OpenFile {
    /// What tells whether a file was written to.
    struct Facts: Equatable {
        var device: UInt64
        var inode: UInt64
        var size: UInt64
        var mode: UInt32
        var modifiedSeconds: Int64
        var modifiedNanoseconds: UInt32

        init(_ status: cal_stat) {
            device = UInt64(status.device_major) << 32 | UInt64(status.device_minor)
            inode = status.inode
            size = status.size
            mode = status.mode
            modifiedSeconds = status.mtime_seconds
            modifiedNanoseconds = status.mtime_nanoseconds
        }

        var isRegular: Bool { mode & UInt32(S_IFMT) == UInt32(S_IFREG) }
        var isFolder: Bool { mode & UInt32(S_IFMT) == UInt32(S_IFDIR) }
        var isLink: Bool { mode & UInt32(S_IFMT) == UInt32(S_IFLNK) }
    }

    /// Nil with errno when they can't be had.
    static func facts(_ descriptor: Int32) -> Facts? {
        var status = cal_stat()
        let error = cal_stat_descriptor(descriptor, &status)
        guard error == 0 else {
            errno = error
            return nil
        }
        return Facts(status)
    }

    /// The same of an entry of an open folder; a link is not followed.
    static func facts(_ name: PathBytes, in folder: Int32) -> Facts? {
        var status = cal_stat()
        let error = name.withCString { cal_stat_entry(folder, $0, 0, &status) }
        guard error == 0 else {
            errno = error
            return nil
        }
        return Facts(status)
    }

    /// The names in an open folder, in order.
    static func names(in folder: Int32) throws(FileFault) -> [PathBytes] {
        // A second descriptor, because closedir closes the one it was given.
        let copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard copy >= 0, let stream = fdopendir(copy) else { throw FileFault(errno, "cannot list a folder") }
        defer { closedir(stream) }
        let offset = MemoryLayout<dirent>.offset(of: \.d_name) ?? 0
        var names: [PathBytes] = []
        while true {
            errno = 0
            guard let entry = readdir(stream) else { break }
            // Not through Swift's tuple of d_name, which would copy bytes beyond the entry.
            let start = UnsafeRawPointer(entry) + offset
            let name = PathBytes(
                UnsafeRawBufferPointer(start: start, count: strlen(start.assumingMemoryBound(to: CChar.self))))
            if name != "." && name != ".." { names.append(name) }
        }
        guard errno == 0 else { throw FileFault(errno, "cannot list a folder") }
        return names.sorted()
    }

    /// The content of a file, if it is not larger; nil for what isn't there.
    static func content(of path: PathBytes, most: Int) throws(FileFault) -> [UInt8]? {
        let descriptor = path.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) }
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw FileFault(errno, "cannot open '\(path)'")
        }
        defer { close(descriptor) }
        guard let facts = facts(descriptor), facts.isRegular else {
            throw FileFault(EINVAL, "'\(path)' is not a regular file")
        }
        guard facts.size <= UInt64(most) else { throw FileFault(EFBIG, "cannot read '\(path)'") }
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 1 << 16)
        while bytes.count <= most {
            let count = block.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw FileFault(errno, "cannot read '\(path)'") }
            if count == 0 { return bytes }
            bytes += block[..<count]
        }
        throw FileFault(EFBIG, "cannot read '\(path)'")
    }

    /// Whether two files hold the same bytes.
    static func haveSameContent(_ one: PathBytes, _ other: PathBytes) -> Bool {
        let left = one.withCString { open($0, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) }
        guard left >= 0 else { return false }
        defer { close(left) }
        let right = other.withCString { open($0, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) }
        guard right >= 0 else { return false }
        defer { close(right) }
        return haveSameContent(left, right)
    }

    static func haveSameContent(_ one: Int32, _ other: Int32) -> Bool {
        guard let here = facts(one), let there = facts(other), here.isRegular, there.isRegular, here.size == there.size
        else { return false }
        var left = [UInt8](repeating: 0, count: 1 << 16)
        var right = left
        var place: off_t = 0
        while true {
            let count = left.withUnsafeMutableBytes { pread(one, $0.baseAddress, $0.count, place) }
            let second = right.withUnsafeMutableBytes { pread(other, $0.baseAddress, $0.count, place) }
            guard count >= 0, count == second, left[..<count] == right[..<count] else { return false }
            if count == 0 { return true }
            place += off_t(count)
        }
    }
}

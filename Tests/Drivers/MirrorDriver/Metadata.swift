import CAlightLinux
import Glibc
import System
import TestKit

/// The metadata of a path that a mirror stores and that must equal the disk.
struct Metadata: Hashable, CustomStringConvertible {
    var type: String
    var size: UInt64
    /// The mode as four octal digits.
    var mode: String
    var links: UInt32
    /// The device, inode and birth time.
    var identity: String
    /// The time in RFC 3339, in UTC, with nanoseconds.
    var modified: String

    /// Returns the names of the differing attributes.
    ///
    /// The size, link count and time of a directory follow from its entries and are not compared.
    func differences(from other: Metadata) -> [String] {
        var names: [String] = []
        if type != other.type { names.append("type") }
        if identity != other.identity { names.append("identity") }
        if mode != other.mode { names.append("mode") }
        guard type != "directory" || other.type != "directory" else { return names }
        if size != other.size { names.append("size") }
        if links != other.links { names.append("nlink") }
        if modified != other.modified { names.append("mtime") }
        return names
    }

    var description: String { "\(type) size \(size) mode \(mode) nlink \(links) id \(identity) mtime \(modified)" }
}

/// The state of everything below directories.
enum TreeScan {
    /// Returns the metadata of each path below the roots; links are not followed.
    static func metadata(below roots: [PathBytes]) -> [PathBytes: Metadata] {
        var found: [PathBytes: Metadata] = [:]
        var directories = roots
        while let directory = directories.popLast() {
            for name in TestFile.names(in: directory) {
                let path = directory.appending(name)
                guard let metadata = metadata(of: path) else { continue }
                found[path] = metadata
                if metadata.type == "directory" { directories.append(path) }
            }
        }
        return found
    }

    /// Makes all directories below the roots readable again, parents first.
    static func uncover(_ roots: [PathBytes]) {
        var directories = roots
        while let directory = directories.popLast() {
            var status = stat()
            guard directory.withCString({ lstat($0, &status) }) == 0, status.st_mode & S_IFMT == S_IFDIR else {
                continue
            }
            if status.st_mode & 0o700 != 0o700 { _ = directory.withCString { chmod($0, 0o755) } }
            directories += TestFile.names(in: directory).map { directory.appending($0) }
        }
    }

    /// Returns the metadata of the path; nil if nothing is there.
    static func metadata(of path: PathBytes) -> Metadata? {
        var status = cal_stat()
        guard path.withCString({ cal_stat_entry(AT_FDCWD, $0, 0, &status) }) == 0 else { return nil }
        let type =
            switch status.mode & UInt32(S_IFMT) {
            case UInt32(S_IFREG): "file"
            case UInt32(S_IFDIR): "directory"
            case UInt32(S_IFLNK): "symlink"
            default: "other"
            }
        let digits = String(status.mode & 0o7777, radix: 8)
        let birth =
            status.has_btime == 0 ? 0 : status.btime_seconds * 1_000_000_000 + Int64(status.btime_nanoseconds)
        return Metadata(
            type: type, size: status.size, mode: String(repeating: "0", count: max(0, 4 - digits.count)) + digits,
            links: status.nlink,
            identity: "\(status.device_major):\(status.device_minor):\(status.inode):\(birth)",
            modified: Timestamp(seconds: status.mtime_seconds, nanoseconds: status.mtime_nanoseconds).description)
    }
}

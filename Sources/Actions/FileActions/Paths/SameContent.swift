import ActionAPI
import CAlightLinux
import Glibc
import System

/// Comparison of files and directories by their content.
enum SameContent {
    /// Whether the file with that name has the content of the open one; false if it is not readable or not a regular
    /// file.
    static func holds(
        _ file: OpenFile, _ name: PathBytes, in directory: DirectoryHandle, within limit: WorkLimit
    ) throws(FileError) -> Bool {
        guard let other = try? directory.open(name, CAL_OPEN_READING), let here = try? file.metadata(),
            let there = try? other.metadata(), here.type == .file, there.type == .file, here.size == there.size
        else { return false }
        if here.identity == there.identity { return true }
        return try holds(file, other, within: limit)
    }

    /// Whether both files have the same bytes from start to end.
    static func holds(_ one: OpenFile, _ other: OpenFile, within limit: WorkLimit) throws(FileError) -> Bool {
        var here = [UInt8](repeating: 0, count: 1 << 18)
        var there = here
        var offset: Int64 = 0
        while true {
            try limit.check("comparison of contents")
            let left = fill(&here, one.descriptor, offset)
            let right = fill(&there, other.descriptor, offset)
            guard left >= 0, left == right else { return false }
            if left == 0 { return true }
            guard memcmp(here, there, left) == 0 else { return false }
            offset += Int64(left)
        }
    }

    /// Reads at the offset until the buffer is full or the file ends; returns the number of bytes, or -1.
    private static func fill(_ buffer: inout [UInt8], _ descriptor: Int32, _ offset: Int64) -> Int {
        buffer.withUnsafeMutableBytes { buffer in
            var filled = 0
            while filled < buffer.count {
                let count = FileIO.read(descriptor, into: buffer[filled...], at: offset + Int64(filled))
                guard count > 0 else { return count < 0 ? -1 : filled }
                filled += count
            }
            return filled
        }
    }

    /// Whether two directories have the same content: names, types, file contents, and targets of links.
    static func holds(
        _ one: DirectoryHandle, _ other: DirectoryHandle, within limit: WorkLimit
    ) throws(FileError) -> Bool {
        guard let names = try? one.names(), let others = try? other.names(), names.sorted() == others.sorted() else {
            return false
        }
        for name in names where try !isSame(name, one, other, within: limit) { return false }
        return true
    }

    private static func isSame(
        _ name: PathBytes, _ one: DirectoryHandle, _ other: DirectoryHandle, within limit: WorkLimit
    ) throws(FileError) -> Bool {
        guard let here = try? one.metadata(of: name), let there = try? other.metadata(of: name), here.type == there.type
        else { return false }
        if here.type == .symlink { return one.target(of: name) == other.target(of: name) }
        if here.type == .directory {
            guard let left = one.openDirectory(name), let right = other.openDirectory(name) else { return false }
            return try holds(left, right, within: limit)
        }
        guard let file = try? one.open(name, CAL_OPEN_READING) else { return false }
        return try holds(file, name, in: other, within: limit)
    }
}

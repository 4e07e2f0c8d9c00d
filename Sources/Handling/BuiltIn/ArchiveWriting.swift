import CLibArchive
import FileEvents
import Glibc

/// Writes files and folders into one archive, in the order of their names.
///
/// The same files make the same archive: no owners, no other times than those of the content, and no order but that of
/// the names.
final class ArchiveWriting {
    private let writer: OpaquePointer
    private let isOver: () -> Bool
    /// The archive itself, which is never put into it.
    private let own: OpenFile.Facts?
    private let path: PathBytes
    private var buffer = [UInt8](repeating: 0, count: 1 << 17)
    private(set) var files = 0
    private(set) var bytes: UInt64 = 0
    /// What was left out, being neither a file nor a folder nor a link.
    private(set) var leftOut: [PathBytes] = []

    enum Ending {
        case done
        case changed
        case gone
        /// The time-out, or a stop.
        case over
    }

    /// - Parameters:
    ///   - descriptor: Where it is written.
    ///   - path: The same, for messages.
    ///   - isOver: Asked at each block.
    init(to descriptor: Int32, _ path: PathBytes, _ format: ArchiveFormat, isOver: @escaping () -> Bool)
        throws(FileFault)
    {
        guard let writer = cla_writer_open(descriptor, format.container, format.filter) else {
            throw FileFault(ENOMEM, "cannot begin an archive at '\(path)'")
        }
        self.writer = writer
        self.isOver = isOver
        self.path = path
        own = OpenFile.facts(descriptor)
    }

    deinit { cla_writer_free(writer) }

    /// Writes what is still to be written.
    func finish() throws(FileFault) { try check(cla_writer_finish(writer)) }

    /// Adds a file, or a folder with all that is in it.
    func add(_ path: PathBytes, as name: PathBytes) throws(FileFault) -> Ending {
        let parent = path.parent.withCString { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard parent >= 0 else {
            if errno == ENOENT || errno == ENOTDIR { return .gone }
            throw FileFault(errno, "cannot open '\(path.parent)'")
        }
        defer { close(parent) }
        return try add(PathBytes(path.lastComponent), in: parent, path, as: name, isTop: true)
    }

    private func add(
        _ entry: PathBytes, in folder: Int32, _ path: PathBytes, as name: PathBytes, isTop: Bool
    ) throws(FileFault) -> Ending {
        if isOver() { return .over }
        guard let seen = OpenFile.facts(entry, in: folder) else {
            // A folder may lose something while it is read.
            if errno == ENOENT { return isTop ? .gone : .changed }
            throw FileFault(errno, "cannot look at '\(path)'")
        }
        if seen.device == own?.device, seen.inode == own?.inode { return .done }
        if seen.isLink { return try addLink(entry, in: folder, path, seen, as: name) }
        guard seen.isRegular || seen.isFolder else {
            leftOut.append(path)
            return .done
        }
        let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
        let descriptor = entry.withCString { openat(folder, $0, flags) }
        guard descriptor >= 0 else {
            if errno == ENOENT { return isTop ? .gone : .changed }
            if errno == ELOOP { return .changed }
            throw FileFault(errno, "cannot open '\(path)'")
        }
        defer { close(descriptor) }
        guard let facts = OpenFile.facts(descriptor) else { throw FileFault(errno, "cannot look at '\(path)'") }
        guard facts.inode == seen.inode, facts.isFolder || facts.isRegular else { return .changed }
        if facts.isFolder {
            try header(PathBytes(name.bytes + [.slash]), facts, size: 0)
            for child in try OpenFile.names(in: descriptor) {
                // Alight's own files in the making, the archive's among them.
                if child.bytes.first == .dot, child.bytes.suffix(11).elementsEqual(".alight-tmp".utf8) { continue }
                let ending = try add(
                    child, in: descriptor, path.appending(child.bytes), as: name.appending(child.bytes), isTop: false)
                guard case .done = ending else { return ending }
            }
            return .done
        }
        return try addContent(of: descriptor, path, facts, as: name)
    }

    private func addContent(
        of descriptor: Int32, _ path: PathBytes, _ facts: OpenFile.Facts, as name: PathBytes
    ) throws(FileFault) -> Ending {
        try header(name, facts, size: Int64(clamping: facts.size))
        var left = facts.size
        while left > 0 {
            if isOver() { return .over }
            let most = min(Int(clamping: left), buffer.count)
            let count = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, most) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw FileFault(errno, "cannot read '\(path)'") }
            if count == 0 { return .changed }
            try check(cla_writer_data(writer, buffer, count))
            left -= UInt64(count)
        }
        guard OpenFile.facts(descriptor) == facts else { return .changed }
        files += 1
        bytes += facts.size
        return .done
    }

    private func addLink(
        _ entry: PathBytes, in folder: Int32, _ path: PathBytes, _ facts: OpenFile.Facts, as name: PathBytes
    ) throws(FileFault) -> Ending {
        var target = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
        let length = entry.withCString { readlinkat(folder, $0, &target, Int(PATH_MAX)) }
        guard length >= 0 else {
            if errno == ENOENT || errno == EINVAL { return .changed }
            throw FileFault(errno, "cannot read the link '\(path)'")
        }
        target[length] = 0
        try target.withUnsafeBufferPointer { (buffer) throws(FileFault) in
            try header(name, facts, size: 0, link: buffer.baseAddress)
        }
        files += 1
        return .done
    }

    /// Set-user-id and its like stay out: whoever unpacks it must not get them by accident.
    private func header(
        _ name: PathBytes, _ facts: OpenFile.Facts, size: Int64, link: UnsafePointer<CChar>? = nil
    ) throws(FileFault) {
        let result = name.withCString { name in
            var entry = cla_entry()
            entry.name = name
            entry.symlink = link
            entry.mode = facts.mode & (UInt32(S_IFMT) | 0o777)
            entry.size = size
            entry.has_mtime = 1
            entry.mtime_seconds = facts.modifiedSeconds
            entry.mtime_nanoseconds = facts.modifiedNanoseconds
            return cla_writer_add(writer, &entry)
        }
        try check(result)
    }

    private func check(_ result: Int32) throws(FileFault) {
        guard result != 0 else { return }
        let error = cla_writer_errno(writer)
        let text = String(cString: cla_writer_error(writer))
        throw FileFault(error > 0 ? error : EIO, "cannot write the archive '\(path)' (\(text))")
    }
}

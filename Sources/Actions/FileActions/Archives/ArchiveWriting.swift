import ActionAPI
import CAlightLinux
import CLibArchive
import Glibc
import PluginProtocol
import Rules
import System

/// A writer that packs files and directories into one archive, in the order of their names.
///
/// The same files produce the same archive: it contains no owners, no times other than modification times, and no order
/// other than that of the names.
final class ArchiveWriting {
    private let writer: OpaquePointer
    private let limit: WorkLimit
    /// The identity of the file at the path of the archive, which is never added to it.
    private let own: FileIdentity?
    private let path: PathBytes
    private var buffer = [UInt8](repeating: 0, count: 1 << 17)
    private(set) var files = 0
    private(set) var bytes: UInt64 = 0
    /// The entries that were omitted, because they are not a file, a directory or a link, or are mount points.
    private(set) var omitted: [PathBytes] = []

    private static let changed = FileError(Outcome(.notReady, "it changed while it was packed", code: "changed"))

    /// - Parameters:
    ///   - descriptor: The descriptor to write to.
    ///   - path: The final path of the archive.
    ///   - format: The format of the archive.
    ///   - own: The identity of the file that exists at the path.
    ///   - limit: The limit of the work, checked for each block.
    /// - Throws: A ``FileError`` if there is not enough memory.
    init(
        to descriptor: Int32, _ path: PathBytes, _ format: ArchiveFormat, without own: FileIdentity?,
        within limit: WorkLimit
    ) throws(FileError) {
        guard let writer = cla_writer_open(descriptor, format.traits.container, format.traits.filter) else {
            throw FileError(ENOMEM, "cannot start an archive at '\(path)'")
        }
        (self.writer, self.limit, self.path, self.own) = (writer, limit, path, own)
    }

    deinit { cla_writer_free(writer) }

    /// Writes the remaining data.
    func finish() throws(FileError) { try check(cla_writer_finish(writer)) }

    /// Adds a file, or a directory with all its content.
    func add(_ source: SourceFile, as name: PathBytes) throws(FileError) {
        // A file that has taken its place in the meantime has not settled.
        guard let seen = try source.directory.metadata(of: source.name), seen.identity == source.metadata.identity,
            seen.type == .directory || seen.hasSameContent(as: source.metadata)
        else { throw Self.changed }
        try add(source.name, in: source.directory, as: name, mount: nil, depth: 0)
    }

    /// The maximum depth, since each level holds a descriptor.
    private static let mostLevels = 256

    /// Adds an entry; a mount below the packed directory, whose mount is given, is omitted.
    private func add(
        _ entry: PathBytes, in directory: DirectoryHandle, as name: PathBytes, mount: UInt64?, depth: Int
    ) throws(FileError) {
        try limit.check("packing")
        let path = directory.path(of: entry)
        guard depth <= Self.mostLevels else {
            throw .failed("'\(path)' is more than \(Self.mostLevels) directories deep", code: "too-deep")
        }
        guard let seen = try directory.metadata(of: entry) else { throw Self.changed }
        if seen.identity == own { return }
        if seen.type == .other || mount.map({ seen.mount != $0 }) ?? false {
            omitted.append(path)
            return
        }
        if seen.type == .symlink { return try addLink(entry, in: directory, seen, as: name) }
        let file = try directory.opened(entry, CAL_OPEN_READING) { $0 == ENOENT || $0 == ELOOP ? Self.changed : nil }
        let metadata = try file.metadata()
        guard metadata.identity == seen.identity else { throw Self.changed }
        guard metadata.type == .directory else { return try addContent(of: file, path, metadata, as: name) }
        try header(PathBytes(name.bytes + [.slash]), metadata, size: 0)
        let inner = DirectoryHandle(file, path)
        // Alight's own temporary files are not part of the directory.
        for child in try inner.names().sorted() where TemporaryName.kind(of: child) == nil {
            try add(child, in: inner, as: name.appending(child.bytes), mount: metadata.mount, depth: depth + 1)
        }
    }

    private func addContent(
        of file: OpenFile, _ path: PathBytes, _ metadata: Snapshot, as name: PathBytes
    ) throws(FileError) {
        try header(name, metadata, size: Int64(clamping: metadata.size))
        var left = metadata.size
        while left > 0 {
            try limit.check("packing")
            let most = min(Int(clamping: left), buffer.count)
            let offset = Int64(clamping: metadata.size - left)
            let count = buffer.withUnsafeMutableBytes { FileIO.read(file.descriptor, into: $0[..<most], at: offset) }
            guard count >= 0 else { throw FileError(errno, "cannot read '\(path)'") }
            if count == 0 { throw Self.changed }
            try check(cla_writer_data(writer, buffer, count))
            left -= UInt64(count)
        }
        guard try metadata.isUnchanged(file.metadata()) else { throw Self.changed }
        files += 1
        bytes += metadata.size
    }

    private func addLink(
        _ entry: PathBytes, in directory: DirectoryHandle, _ metadata: Snapshot, as name: PathBytes
    ) throws(FileError) {
        guard let target = directory.target(of: entry) else {
            if errno == ENOENT || errno == EINVAL { throw Self.changed }
            throw FileError(errno, "cannot read the link '\(directory.path(of: entry))'")
        }
        try header(name, metadata, size: 0, link: target)
        files += 1
    }

    /// Writes a header without set-user-id and similar bits, which unpacking must not set by accident.
    private func header(
        _ name: PathBytes, _ metadata: Snapshot, size: Int64, link: PathBytes? = nil
    ) throws(FileError) {
        var entry = cla_entry()
        entry.mode = Self.types[metadata.type, default: UInt32(S_IFREG)] | UInt32(metadata.mode & 0o777)
        entry.size = size
        entry.has_mtime = 1
        entry.mtime_seconds = metadata.modified.seconds
        entry.mtime_nanoseconds = metadata.modified.nanoseconds
        let result = name.withCString { name in
            (link ?? "").withCString { target in
                entry.name = name
                entry.symlink = link == nil ? nil : target
                return cla_writer_add(writer, &entry)
            }
        }
        try check(result)
    }

    /// The types in a mode; those that are missing are packed as regular files.
    private static let types: [FileType: UInt32] = [.directory: UInt32(S_IFDIR), .symlink: UInt32(S_IFLNK)]

    private func check(_ result: Int32) throws(FileError) {
        guard result != 0 else { return }
        let error = cla_writer_errno(writer)
        let text = String(cString: cla_writer_error(writer))
        throw FileError(error > 0 ? error : EIO, "cannot write the archive '\(path)' (\(text))")
    }
}

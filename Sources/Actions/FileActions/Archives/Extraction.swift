import ActionAPI
import CAlightLinux
import CLibArchive
import Glibc
import Globbing
import System

/// The extraction of an archive into a directory that no other process knows yet.
///
/// All paths are resolved from the descriptor of the directory, one name at a time and without following links, so
/// nothing can be written elsewhere. Limits are checked while it writes.
final class Extraction {
    private let source: SourceFile
    private let directory: DirectoryHandle
    private let limits: ExtractLimits
    private let excluded: [Glob]
    private let limit: WorkLimit
    /// The mode bits that new files do not get.
    private let mask: UInt32
    /// The targets of the symbolic links as specified in the archive, by the path of the link below the directory.
    ///
    /// They are created after all other entries, so nothing is ever written through one of them.
    private var links: [PathBytes: PathBytes] = [:]
    /// The directories with the mode and time that they get at the end.
    private var directories: [PathBytes: (mode: UInt32, time: cal_time)] = [:]
    private(set) var count = 0
    private(set) var bytes: UInt64 = 0
    /// Whether the extraction ended at the limit of the work.
    private(set) var wasStopped = false
    private var excess: String?
    /// The name of the current entry, for messages.
    private var entryName: PathBytes = ""

    /// - Parameters:
    ///   - source: The archive.
    ///   - directory: An empty directory.
    ///   - limits: The limits on the content.
    ///   - excluded: The globs of the entries that are not unpacked, relative to the top of the archive.
    ///   - mask: The umask.
    ///   - limit: The limit of the work, checked for each block.
    init(
        of source: SourceFile, into directory: DirectoryHandle, _ limits: ExtractLimits, without excluded: [Glob],
        mask: UInt32, within limit: WorkLimit
    ) {
        (self.source, self.directory, self.limits, self.excluded) = (source, directory, limits, excluded)
        (self.mask, self.limit) = (mask, limit)
    }

    /// Unpacks all entries.
    ///
    /// - Throws: A ``FileError`` if the archive is invalid, exceeds a limit, or cannot be written to the disk, and at
    ///   the limit of the work.
    func run(_ archive: OpenFile) throws(FileError) {
        let goesOn: cla_progress = { context, unpacked in
            guard let context else { return 0 }
            return Unmanaged<Extraction>.fromOpaque(context).takeUnretainedValue().goesOn(unpacked) ? 1 : 0
        }
        guard let reader = cla_reader_open(archive.descriptor, goesOn, Unmanaged.passUnretained(self).toOpaque()) else {
            throw failure("there is no memory to read an archive", ENOMEM)
        }
        defer { cla_reader_free(reader) }
        do throws(FileError) {
            var entry = cla_entry()
            while true {
                let result = cla_reader_next(reader, &entry)
                if result == 0 { break }
                guard result > 0 else { throw problem(of: reader, archive) }
                try take(entry, reader)
            }
            guard count > 0 else { throw FileError.failed("the archive is empty", code: "empty") }
            try makeLinks()
            try finishDirectories()
        } catch {
            if wasStopped { try limit.check("unpacking") }
            throw error
        }
    }

    private func goesOn(_ unpacked: Int64) -> Bool {
        if isOver { return false }
        // Data that is unpacked but never becomes a file counts, too.
        excess = excess ?? limits.excess(bytes: UInt64(max(0, unpacked)), files: 0, packed: source.metadata.size)
        return excess == nil
    }

    private var isOver: Bool {
        if limit.isOver { wasStopped = true }
        return wasStopped
    }

    private func checkTime() throws(FileError) { if isOver { try limit.check("unpacking") } }

    // MARK: Errors

    private func problem(of reader: OpaquePointer, _ archive: OpenFile? = nil) -> FileError {
        if let excess { return Self.tooLarge(excess) }
        let error = cla_reader_errno(reader)
        if error != 0 { return FileError(error, "cannot read '\(source.path)'") }
        let text = String(cString: cla_reader_error(reader))
        // archive_read_has_encrypted_entries(3) reads out of bounds if no format was recognized.
        let lower = text.lowercased()
        if ["encrypt", "passphrase", "password"].contains(where: { lower.contains($0) }) { return Self.encrypted }
        if text.hasPrefix("Unrecognized archive format") {
            var start = [UInt8](repeating: 0, count: 4)
            if let archive, pread(archive.descriptor, &start, 4, 0) == 4, start == Array("PK\u{3}\u{4}".utf8) {
                return .failed("the archive is damaged: the directory at its end is missing", code: "damaged")
            }
            return .failed("it is not an archive that can be unpacked (tar, zip or 7z)", code: "not-an-archive")
        }
        return .failed("the archive is damaged: \(String(cleaning: text.utf8))", code: "damaged")
    }

    private static let encrypted = FileError.failed(
        "the archive is encrypted, and can't be unpacked without its password", code: "encrypted")

    private static func tooLarge(_ excess: String) -> FileError {
        .failed("refused: the archive contains \(excess)", code: "too-large")
    }

    /// Returns the error for the current entry.
    private func refusal(_ reason: String) -> FileError {
        .failed("refused: the entry '\(String(cleaning: entryName.bytes))' \(reason)", code: "refused")
    }

    private func failure(_ what: String, _ error: Int32 = errno) -> FileError {
        FileError(error, "\(what) of '\(source.path)'")
    }

    private func checkBounds() throws(FileError) {
        if let excess = limits.excess(bytes: bytes, files: count, packed: source.metadata.size) {
            throw Self.tooLarge(excess)
        }
    }

    private func countEntry() throws(FileError) {
        count += 1
        try checkBounds()
    }

    // MARK: Entries

    /// The maximum depth, since each entry is reached through all directories above it.
    private static let mostLevels = 256

    private func take(_ entry: cla_entry, _ reader: OpaquePointer) throws(FileError) {
        // A block of the archive can contain thousands of entries.
        try checkTime()
        guard let name = Self.path(entry.name).map({ entry.is_in_zip != 0 ? ZIPName.decoded($0) : $0 }) else {
            throw .failed("refused: the archive has a name that can't be read", code: "refused")
        }
        entryName = name
        if entry.is_encrypted != 0 { throw Self.encrypted }
        let parts = try parts(of: name)
        let type = entry.mode & UInt32(S_IFMT)
        guard let last = parts.last.map({ PathBytes($0) }) else {
            // The directory itself, as `./`.
            if type == UInt32(S_IFDIR) { return }
            throw refusal("has no name")
        }
        guard parts.count <= Self.mostLevels else { throw refusal("is more than \(Self.mostLevels) directories deep") }
        if isExcluded(parts) { return }
        let path = PathBytes(parts.joined(separator: [.slash]))
        let time = cal_time(
            seconds: entry.mtime_seconds, nanoseconds: entry.mtime_nanoseconds, is_left: entry.has_mtime == 0 ? 1 : 0)
        // A directory that was created for its content gets its metadata from a later entry.
        if type != UInt32(S_IFDIR) || directories[path] == nil { try countEntry() }
        let parent = try openDirectory(parts.dropLast())
        if let target = Self.path(entry.hardlink) {
            try link(path, last, parent, to: target)
        } else if type == UInt32(S_IFDIR) {
            guard links[path] == nil else { throw refusal("is a directory and a link") }
            try makeDirectory(last, in: parent)
            directories[path] = (entry.mode & 0o777, time)
        } else if type == UInt32(S_IFLNK), let target = Self.path(entry.symlink) {
            try clear(path, last, parent)
            links[path] = target
        } else if type == UInt32(S_IFREG) {
            try clear(path, last, parent)
            try write(last, in: parent, entry, reader, time)
        } else {
            throw refusal("is a device, a pipe or a socket")
        }
    }

    /// Whether the entry or a directory above it is excluded.
    private func isExcluded(_ parts: [ArraySlice<UInt8>]) -> Bool {
        parts.indices.contains { last in
            let path = Array(parts[...last].joined(separator: [.slash]))
            return excluded.contains { $0.matches(path) }
        }
    }

    private static func path(_ text: UnsafePointer<CChar>?) -> PathBytes? {
        text.map { PathBytes(UnsafeRawBufferPointer(start: $0, count: strlen($0))) }
    }

    /// Splits a path into its names, and refuses a path that is not below the directory.
    private func parts(of path: PathBytes) throws(FileError) -> [ArraySlice<UInt8>] {
        if path.bytes.first == .slash { throw refusal("has an absolute name") }
        let parts = path.bytes.split(separator: .slash).filter { !$0.elementsEqual([.dot]) }
        if parts.contains(where: { $0.elementsEqual([.dot, .dot]) }) {
            throw refusal("leads out of the directory by '..'")
        }
        if path.bytes.count >= Int(PATH_MAX) || parts.contains(where: { $0.count > 255 }) {
            throw refusal("has a name that is too long")
        }
        return parts
    }

    /// Removes an earlier entry with the same name; the later entry counts.
    private func clear(_ path: PathBytes, _ name: PathBytes, _ parent: DirectoryHandle) throws(FileError) {
        links[path] = nil
        switch parent.unlink(name) {
        case 0, ENOENT: return
        case EISDIR, EPERM: throw refusal("is a directory and something else")
        case let error: throw failure("cannot remove '\(path)'", error)
        }
    }

    private func link(
        _ path: PathBytes, _ name: PathBytes, _ parent: DirectoryHandle, to target: PathBytes
    ) throws(FileError) {
        let parts = try parts(of: target)
        let source = PathBytes(parts.joined(separator: [.slash]))
        if source == path { return }
        if let further = links[source], parts.count == path.bytes.split(separator: .slash).count,
            source.parent == path.parent
        {
            // A second name of a link, in the same directory, has the same target.
            try clear(path, name, parent)
            links[path] = further
            return
        }
        guard let last = parts.last.map({ PathBytes($0) }), links[source] == nil,
            let opened = try? KernelFileSystem().open(source.parent, beneath: directory.file),
            (try? DirectoryHandle(opened, source.parent).metadata(of: last))?.type == .file
        else { throw refusal("is a link to '\(String(cleaning: target.bytes))', which is not a file before it") }
        try clear(path, name, parent)
        let linked = last.withCString { last in
            name.withCString { linkat(opened.descriptor, last, parent.descriptor, $0, 0) }
        }
        guard linked == 0 else { throw failure("cannot link '\(path)'") }
    }

    private func write(
        _ name: PathBytes, in parent: DirectoryHandle, _ entry: cla_entry, _ reader: OpaquePointer, _ time: cal_time
    ) throws(FileError) {
        // No set-user-id or similar bits, and the owner can always read and write the file.
        let descriptor = parent.create(name, mode: entry.mode & 0o777 | 0o600)
        guard descriptor >= 0 else { throw failure("cannot create '\(name)'") }
        defer { close(descriptor) }
        let start = bytes
        func reach(_ size: UInt64) throws(FileError) {
            bytes = max(bytes, start + min(size, .max - start))
            try checkBounds()
        }
        // A file whose announced size exceeds the limit is refused before it is written.
        if entry.size > 0 { try reach(UInt64(entry.size)) }
        var end: UInt64 = 0
        while true {
            var block: UnsafeRawPointer?
            var size = 0
            var offset: Int64 = 0
            let result = cla_reader_data(reader, &block, &size, &offset)
            if result == 0 { break }
            guard result > 0, offset >= 0 else { throw problem(of: reader) }
            try checkTime()
            let reached = UInt64(offset) + UInt64(size)
            try reach(reached)
            let error = FileIO.write(UnsafeRawBufferPointer(start: block, count: size), to: descriptor, at: offset)
            guard error == 0 else { throw failure("cannot write '\(name)'", error) }
            end = max(end, reached)
        }
        // A file may end in a hole.
        if entry.size > Int64(clamping: end), ftruncate(descriptor, off_t(entry.size)) != 0 {
            throw failure("cannot write '\(name)'")
        }
        Self.setTime(time, of: descriptor)
    }

    // MARK: Directories

    /// Opens a directory below, and creates missing directories on the path.
    private func openDirectory(_ parts: some Collection<ArraySlice<UInt8>>) throws(FileError) -> DirectoryHandle {
        var current = directory
        var path: [UInt8] = []
        for part in parts {
            if !path.isEmpty { path.append(.slash) }
            path += part
            let inner = PathBytes(path)
            guard links[inner] == nil else { throw refusal("is behind a link") }
            current = try openOrMake(PathBytes(part), in: current, inner)
        }
        return current
    }

    private func openOrMake(
        _ name: PathBytes, in parent: DirectoryHandle, _ path: PathBytes
    ) throws(FileError) -> DirectoryHandle {
        var descriptor = Self.openDirectory(name, in: parent)
        if descriptor < 0, errno == ENOENT {
            try countEntry()
            try makeDirectory(name, in: parent)
            directories[path] = (0o777, Self.unchanged)
            descriptor = Self.openDirectory(name, in: parent)
        }
        guard descriptor >= 0 else {
            if errno == ENOTDIR || errno == ELOOP { throw refusal("is below a file") }
            throw failure("cannot open the directory '\(path)'")
        }
        return DirectoryHandle(descriptor, path)
    }

    private static func openDirectory(_ name: PathBytes, in parent: DirectoryHandle) -> Int32 {
        name.withCString { openat(parent.descriptor, $0, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
    }

    private func makeDirectory(_ name: PathBytes, in parent: DirectoryHandle) throws(FileError) {
        let error = parent.makeDirectory(name, mode: 0o700)
        if error == 0 { return }
        guard error == EEXIST else { throw failure("cannot create the directory '\(name)'", error) }
        guard (try? parent.metadata(of: name))?.type == .directory else { throw refusal("is a directory and a file") }
    }

    // MARK: Completion

    private func makeLinks() throws(FileError) {
        let sorted = links.sorted { $0.key < $1.key }
        for (path, target) in sorted where !staysInside(path, to: target) {
            entryName = path
            throw refusal("is a link out of the directory, to '\(String(cleaning: target.bytes))'")
        }
        for (path, target) in sorted {
            try checkTime()
            entryName = path
            let parent = try openDirectory(path.bytes.split(separator: .slash).dropLast())
            let error = parent.makeLink(PathBytes(path.lastComponent), to: target)
            guard error == 0 else { throw failure("cannot create the link '\(path)'", error) }
        }
    }

    /// Sets the modes and times of the directories, the inner ones first.
    private func finishDirectories() throws(FileError) {
        for (path, metadata) in directories.sorted(by: { $0.key > $1.key }) {
            try checkTime()
            entryName = path
            let directory = try openDirectory(path.bytes.split(separator: .slash))
            fchmod(directory.descriptor, mode_t(metadata.mode & ~mask | 0o700))
            Self.setTime(metadata.time, of: directory.descriptor)
        }
        fchmod(directory.descriptor, mode_t(0o777 & ~mask))
    }

    private static let unchanged = cal_time(seconds: 0, nanoseconds: 0, is_left: 1)

    /// Sets the time of modification, if the archive has one.
    private static func setTime(_ time: cal_time, of descriptor: Int32) {
        if time.is_left == 0 { _ = cal_change_times(descriptor, unchanged, time) }
    }

    // MARK: Links

    /// The number of steps after which links count as a loop, as in the kernel.
    private static let mostSteps = 40

    /// Whether a link cannot lead out of the directory, even once its target is created.
    private func staysInside(_ link: PathBytes, to target: PathBytes) -> Bool {
        guard target.bytes.first != .slash, !target.bytes.isEmpty else { return false }
        var location = Array(link.bytes.split(separator: .slash).dropLast())
        var rest = Array(target.bytes.split(separator: .slash).reversed())
        var steps = 0
        while let part = rest.popLast() {
            if part.elementsEqual([.dot]) { continue }
            if part.elementsEqual([.dot, .dot]) {
                guard location.popLast() != nil else { return false }
                continue
            }
            location.append(part)
            guard let next = links[PathBytes(location.joined(separator: [.slash]))] else { continue }
            steps += 1
            guard steps <= Self.mostSteps, next.bytes.first != .slash else { return false }
            location.removeLast()
            rest += next.bytes.split(separator: .slash).reversed()
        }
        return true
    }
}

/// The names of the entries in a ZIP archive.
enum ZIPName {
    /// The characters of the bytes from 0x80 in code page 437.
    private static let upperHalf = Array(
        "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{A0}"
            .unicodeScalars)

    /// Returns a name as UTF-8: one that is not valid UTF-8 is in code page 437, as the format specifies.
    ///
    /// Valid UTF-8 is returned unchanged even if the entry is not marked as UTF-8, because archives of macOS and of
    /// older Linux programs lack the mark.
    static func decoded(_ name: PathBytes) -> PathBytes {
        guard String(validating: name.bytes, as: UTF8.self) == nil else { return name }
        var text = String.UnicodeScalarView()
        for byte in name.bytes {
            text.append(byte < 0x80 ? Unicode.Scalar(byte) : upperHalf[Int(byte - 0x80)])
        }
        return PathBytes(String(text).utf8)
    }
}

import CAlightLinux
import CLibArchive
import Glibc
import System

/// The extraction of an archive into a directory that no other process knows yet.
///
/// All paths are resolved from the descriptor of the directory, one name at a time and without following links, so
/// nothing can be written elsewhere. Limits are checked while it writes.
final class Extraction {
    let folder: Int32
    private let limits: ExtractLimits
    private let packed: UInt64
    let isOver: () -> Bool
    var links = LinkPlan()
    /// The directories with the mode and time that they get at the end.
    private var folders: [PathBytes: (mode: UInt32, time: timespec?)] = [:]
    private(set) var count = 0
    var bytes: UInt64 = 0
    var wasStopped = false
    private var excess: String?
    /// The mode bits that new files do not get.
    private let mask: UInt32

    /// The reason why nothing is unpacked.
    struct Refusal: Error {
        var message: String
        var code: String
        var errno: Int32?
    }

    /// - Parameters:
    ///   - folder: The descriptor of an empty directory.
    ///   - limits: The limits on the content.
    ///   - packed: The size of the archive.
    ///   - mask: The umask.
    ///   - isOver: Called for each block; true stops the extraction.
    init(
        into folder: Int32, _ limits: ExtractLimits, packed: UInt64, mask: UInt32, isOver: @escaping () -> Bool
    ) {
        self.folder = folder
        self.limits = limits
        self.packed = packed
        self.mask = mask
        self.isOver = isOver
    }

    /// Unpacks all entries.
    ///
    /// - Returns: False if it was stopped.
    /// - Throws: A ``Refusal`` if the archive is invalid, exceeds a limit, or cannot be written to the disk.
    func run(_ archive: Int32) throws(Refusal) -> Bool {
        let goesOn: cla_goes_on = { context, unpacked in
            guard let context else { return 0 }
            return Unmanaged<Extraction>.fromOpaque(context).takeUnretainedValue().goesOn(unpacked) ? 1 : 0
        }
        guard let reader = cla_reader_open(archive, goesOn, Unmanaged.passUnretained(self).toOpaque()) else {
            throw Refusal(message: "there is no memory to read an archive", code: "file-error", errno: ENOMEM)
        }
        defer { cla_reader_free(reader) }
        do throws(Refusal) {
            var entry = cla_entry()
            while true {
                let result = cla_reader_next(reader, &entry)
                if result == 0 { break }
                guard result > 0 else { throw problem(of: reader) }
                try take(entry, reader)
            }
            guard count > 0 else { throw Refusal(message: "the archive is empty", code: "empty") }
            try makeLinks()
            try finishFolders()
        } catch {
            if wasStopped { return false }
            throw error
        }
        return true
    }

    private func goesOn(_ unpacked: Int64) -> Bool {
        if isOver() {
            wasStopped = true
            return false
        }
        // Data that is unpacked but never becomes a file counts, too.
        excess = excess ?? limits.excess(bytes: UInt64(max(0, unpacked)), files: 0, packed: packed)
        return excess == nil
    }

    func problem(of reader: OpaquePointer) -> Refusal {
        if let excess { return Refusal(message: "refused: the archive contains \(excess)", code: "too-large") }
        let text = String(cString: cla_reader_error(reader))
        // archive_read_has_encrypted_entries(3) reads out of bounds if no format was recognized.
        if text.isAboutPassword { return Self.encrypted }
        if text.hasPrefix("Unrecognized archive format") {
            return Refusal(
                message: "it is not an archive that can be unpacked (tar, zip or 7z)", code: "not-an-archive")
        }
        return Refusal(
            message: "the archive is damaged: \(String(cleaning: text.utf8))", code: "damaged")
    }

    private static let encrypted = Refusal(
        message: "the archive is encrypted, and can't be unpacked without its password", code: "encrypted")

    // MARK: Entries

    /// The maximum depth, since each entry is reached through all directories above it.
    private static let mostLevels = 256

    private func take(_ entry: cla_entry, _ reader: OpaquePointer) throws(Refusal) {
        // A block of the archive can contain thousands of entries.
        try checkTime()
        guard let raw = entry.name else {
            throw Refusal(message: "refused: the archive has a name that can't be read", code: "refused")
        }
        let shown = PathBytes(UnsafeRawBufferPointer(start: raw, count: strlen(raw)))
        func refuse(_ why: String) -> Refusal {
            let name = String(cleaning: shown.bytes)
            return Refusal(message: "refused: the entry '\(name)' \(why)", code: "refused")
        }
        if entry.is_encrypted != 0 { throw Self.encrypted }
        let parts = try Self.parts(of: shown, refuse)
        let type = entry.mode & UInt32(S_IFMT)
        guard let last = parts.last else {
            // The directory itself, as `./`.
            if type == UInt32(S_IFDIR) { return }
            throw refuse("has no name")
        }
        guard parts.count <= Self.mostLevels else { throw refuse("is more than \(Self.mostLevels) directories deep") }
        let path = PathBytes(parts.joined(separator: [.slash]))
        let time =
            entry.has_mtime != 0
            ? timespec(tv_sec: Int(entry.mtime_seconds), tv_nsec: Int(entry.mtime_nanoseconds)) : nil
        // A directory that was created for its content gets its metadata from a later entry.
        if type != UInt32(S_IFDIR) || folders[path] == nil { try add(1) }
        let parent = try openFolder(parts.dropLast(), refuse)
        defer { close(parent) }
        let name = PathBytes(last)
        if let hardlink = entry.hardlink {
            let target = PathBytes(UnsafeRawBufferPointer(start: hardlink, count: strlen(hardlink)))
            try link(path, name, parent, to: target, refuse)
        } else if type == UInt32(S_IFDIR) {
            guard links[path] == nil else { throw refuse("is a directory and a link") }
            try makeFolder(name, in: parent, refuse)
            folders[path] = (entry.mode & 0o777, time)
        } else if type == UInt32(S_IFLNK), let target = entry.symlink {
            try clear(path, name, parent, refuse)
            links[path] = PathBytes(UnsafeRawBufferPointer(start: target, count: strlen(target)))
        } else if type == UInt32(S_IFREG) {
            try clear(path, name, parent, refuse)
            try write(name, in: parent, entry, reader, time, refuse)
        } else {
            throw refuse("is a device, a pipe or a socket")
        }
    }

    private func checkTime() throws(Refusal) {
        guard isOver() else { return }
        wasStopped = true
        throw Refusal(message: "stopped", code: "interrupted")
    }

    /// Splits a path into its names, and refuses a path that is not below the directory.
    static func parts(of path: PathBytes, _ refuse: (String) -> Refusal) throws(Refusal) -> [ArraySlice<UInt8>] {
        if path.bytes.first == .slash { throw refuse("has an absolute name") }
        let parts = path.bytes.split(separator: .slash).filter { !$0.elementsEqual([.dot]) }
        if parts.contains(where: { $0.elementsEqual([.dot, .dot]) }) {
            throw refuse("leads out of the directory by '..'")
        }
        if path.bytes.count >= Int(PATH_MAX) || parts.contains(where: { $0.count > 255 }) {
            throw refuse("has a name that is too long")
        }
        return parts
    }

    /// Returns the file type of an entry; nil if it does not exist.
    static func type(of name: PathBytes, in folder: Int32) -> UInt32? {
        var status = cal_stat()
        guard name.withCString({ cal_stat_entry(folder, $0, 0, &status) }) == 0 else { return nil }
        return status.mode & UInt32(S_IFMT)
    }

    private func add(_ entries: Int) throws(Refusal) {
        count += entries
        try checkBounds()
    }

    func checkBounds() throws(Refusal) {
        guard let excess = limits.excess(bytes: bytes, files: count, packed: packed) else { return }
        throw Refusal(message: "refused: the archive contains \(excess)", code: "too-large")
    }

    /// Opens a directory below, and creates missing directories on the path.
    private func openFolder(
        _ parts: some Collection<ArraySlice<UInt8>>, _ refuse: (String) -> Refusal
    ) throws(Refusal) -> Int32 {
        var current = dup(folder)
        var path: [UInt8] = []
        for part in parts {
            if !path.isEmpty { path.append(.slash) }
            path += part
            do throws(Refusal) {
                guard links[PathBytes(path)] == nil else { throw refuse("is behind a link") }
                let name = PathBytes(part)
                let next = try openOrMake(name, in: current, PathBytes(path), refuse)
                close(current)
                current = next
            } catch {
                close(current)
                throw error
            }
        }
        guard current >= 0 else { throw Self.fault("cannot open a directory") }
        return current
    }

    private func openOrMake(
        _ name: PathBytes, in parent: Int32, _ path: PathBytes, _ refuse: (String) -> Refusal
    ) throws(Refusal) -> Int32 {
        let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
        var descriptor = name.withCString { openat(parent, $0, flags) }
        if descriptor < 0, errno == ENOENT {
            try add(1)
            try makeFolder(name, in: parent, refuse)
            folders[path] = (0o777, nil)
            descriptor = name.withCString { openat(parent, $0, flags) }
        }
        guard descriptor >= 0 else {
            if errno == ENOTDIR || errno == ELOOP { throw refuse("is below a file") }
            throw Self.fault("cannot open the directory '\(path)'")
        }
        return descriptor
    }

    private func makeFolder(_ name: PathBytes, in parent: Int32, _ refuse: (String) -> Refusal) throws(Refusal) {
        if name.withCString({ mkdirat(parent, $0, 0o700) }) == 0 { return }
        guard errno == EEXIST else { throw Self.fault("cannot create the directory '\(name)'") }
        guard Self.type(of: name, in: parent) == UInt32(S_IFDIR) else { throw refuse("is a directory and a file") }
    }

    // MARK: Completion

    private func makeLinks() throws(Refusal) {
        if let link = links.leadingOut {
            let target = links[link].map { String(cleaning: $0.bytes) } ?? ""
            let name = String(cleaning: link.bytes)
            throw Refusal(
                message: "refused: the entry '\(name)' is a link out of the directory, to '\(target)'", code: "refused")
        }
        for (path, target) in links.targets.sorted(by: { $0.key < $1.key }) {
            try checkTime()
            let parts = path.bytes.split(separator: .slash)
            let parent = try openFolder(parts.dropLast()) { Refusal(message: "'\(path)' \($0)", code: "refused") }
            defer { close(parent) }
            let name = PathBytes(path.lastComponent)
            guard target.withCString({ to in name.withCString { symlinkat(to, parent, $0) } }) == 0 else {
                throw Self.fault("cannot create the link '\(path)'")
            }
        }
    }

    /// Sets the modes and times of the directories, the inner ones first.
    private func finishFolders() throws(Refusal) {
        for (path, facts) in folders.sorted(by: { $0.key > $1.key }) {
            try checkTime()
            let parts = path.bytes.split(separator: .slash)
            let descriptor = try openFolder(parts) { Refusal(message: "'\(path)' \($0)", code: "refused") }
            defer { close(descriptor) }
            fchmod(descriptor, mode_t(facts.mode & ~mask | 0o700))
            if let time = facts.time { Self.setTime(time, of: descriptor) }
        }
        fchmod(folder, mode_t(0o777 & ~mask))
    }

    /// UTIME_OMIT of utimensat(2), a macro that Swift does not import; leaves this time unchanged.
    private static let omit = (1 << 30) - 2

    static func setTime(_ time: timespec, of descriptor: Int32) {
        var times = [timespec(tv_sec: 0, tv_nsec: omit), time]
        futimens(descriptor, &times)
    }

    static func fault(_ what: String) -> Refusal {
        Refusal(message: what, code: "file-error", errno: errno)
    }
}

extension String {
    /// Whether libarchive reports that a password is required.
    fileprivate var isAboutPassword: Bool {
        let lower = lowercased()
        return ["encrypt", "passphrase", "password"].contains { lower.contains($0) }
    }
}

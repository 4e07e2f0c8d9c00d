import CAlightLinux
import FileEvents
import Glibc
import PluginProtocol
import Rules

/// A system call that failed: which, on what.
struct FileFault: Error {
    var errno: Int32
    /// What was tried, as `cannot create '/x/y'`.
    var what: String

    init(_ errno: Int32, _ what: String) {
        self.errno = errno
        self.what = what
    }

    /// What becomes of the job: full or busy may pass, a wrong place won't.
    var outcome: Outcome {
        let message = "\(what): \(String(cString: strerror(errno)))"
        switch errno {
        case ENOSPC, EDQUOT, EIO, EBUSY, ETXTBSY, EAGAIN, ESTALE, EMFILE, ENFILE, ENOMEM, EINTR, ENODEV, ENXIO,
            ETIMEDOUT,
            EHOSTDOWN, ENOTCONN:
            return Outcome(.retry, message, code: "file-error")
        default:
            return Outcome(.failed, message, code: "file-error")
        }
    }
}

/// What to do when the destination exists.
enum Conflict: String, CaseIterable {
    case rename, overwrite, skip, fail

    static let schema = ParameterSchema(
        type: "string", enum: allCases.map { .string($0.rawValue) }, default: "rename",
        description: "What to do when there is a file of that name: give the new one a number, replace it, skip, fail.")
}

/// The place that `to:` names.
struct Destination {
    var path: PathBytes
    var conflict: Conflict

    static let toSchema = ParameterSchema(
        type: "string", minLength: 1,
        description:
            "The new path, or with a slash at its end the folder to put the file into. Folders are made. A relative path is meant from the folder of the rules file.",
        role: ParameterSchema.destination
    )

    init(path: PathBytes, conflict: Conflict) {
        self.path = path
        self.conflict = conflict
    }

    /// Reads `to` and `on_conflict`.
    ///
    /// - Throws: When the expanded path can't be one.
    init(_ invocation: Invocation) throws(FileFault) {
        let to = invocation.parameters["to"]?.bytes ?? []
        guard !to.isEmpty, !to.contains(0) else { throw FileFault(EINVAL, "'to' is empty") }
        var path = invocation.folder.resolving(to)
        if to.last == .slash { path = path.appending(invocation.job.event.path.lastComponent) }
        self.path = path.normalized
        let word = invocation.parameters["on_conflict"]?.bytes.map { String(decoding: $0, as: UTF8.self) }
        conflict = word.flatMap(Conflict.init(rawValue:)) ?? .rename
    }

    /// Makes the folder of the destination and those above it, with the umask's mode.
    func makeFolder() throws(FileFault) { try Self.makeFolder(path.parent) }

    private static func makeFolder(_ folder: PathBytes) throws(FileFault) {
        if folder.withCString({ mkdir($0, 0o777) }) == 0 { return }
        var error = errno
        if error == ENOENT, folder.parent != folder {
            try makeFolder(folder.parent)
            if folder.withCString({ mkdir($0, 0o777) }) == 0 { return }
            error = errno
        }
        var status = stat()
        if error == EEXIST || error == EROFS, folder.withCString({ stat($0, &status) }) == 0,
            status.st_mode & S_IFMT == S_IFDIR
        {
            return
        }
        throw FileFault(error == EEXIST ? ENOTDIR : error, "cannot make the folder '\(folder)'")
    }

    /// Whether the destination is the name that the file has, by whatever way to its folder.
    func isSame(as source: PathBytes) -> Bool {
        guard path.lastComponent == source.lastComponent else { return false }
        var here = stat()
        var there = stat()
        guard source.parent.withCString({ stat($0, &here) }) == 0, path.parent.withCString({ stat($0, &there) }) == 0
        else { return path == source }
        return here.st_dev == there.st_dev && here.st_ino == there.st_ino
    }

    /// The most bytes of one name, on nearly every file system.
    private static let longestName = 255
    /// How many names are tried: the plain one, and those with a number.
    static let mostNumbers = 10_000

    /// The destination with a number before its extension: `a (1).txt`; 0 is the plain name.
    ///
    /// A name that would get too long loses the end of its stem, or when that is
    /// not enough its own end.
    func numbered(_ number: Int) -> PathBytes {
        guard number > 0 else { return path }
        let name = path.lastComponent
        let mark = Array(" (\(number))".utf8)
        var dot = name.lastIndex(of: .dot).flatMap { $0 > name.startIndex ? $0 : nil } ?? name.endIndex
        let excess = name.count + mark.count - Self.longestName
        if excess >= dot - name.startIndex { dot = name.endIndex }
        var stem = name[..<dot]
        if excess > 0 {
            stem = stem.dropLast(excess)
            // Not in the middle of a character: bytes that go on with one, then the one that began it.
            if let next = name[stem.endIndex...].first, next & 0xC0 == 0x80 {
                while let last = stem.last, last & 0xC0 == 0x80 { stem.removeLast() }
                if let last = stem.last, last >= 0xC0 { stem.removeLast() }
            }
        }
        return path.parent.appending(Array(stem) + mark + Array(name[dot...]))
    }

    /// How a file came to its final name.
    enum Publication {
        case done(PathBytes)
        /// `on_conflict: skip`, and there is a file.
        case skipped
    }

    /// Gives a file its final name, without a moment in which another file of that name could be lost.
    func publish(_ file: PathBytes) throws(FileFault) -> Publication {
        if conflict == .overwrite {
            // rename(2) does nothing at all between two names of one file.
            if Self.areOneFile(file, path) {
                guard file.withCString({ unlink($0) }) == 0 else { throw FileFault(errno, "cannot remove '\(file)'") }
                return .done(path)
            }
            let result = file.withCString { from in path.withCString { rename(from, $0) } }
            guard result == 0 else { throw FileFault(errno, "cannot rename to '\(path)'") }
            return .done(path)
        }
        for number in 0..<Self.mostNumbers {
            let name = numbered(number)
            switch Self.renameWithoutReplacing(file, name) {
            case 0: return .done(name)
            case EEXIST:
                if conflict == .skip { return .skipped }
                if conflict == .fail { throw FileFault(EEXIST, "on_conflict is 'fail' and '\(path)'") }
            case let error: throw FileFault(error, "cannot rename to '\(name)'")
            }
        }
        throw FileFault(EEXIST, "there are \(Self.mostNumbers) files like '\(path)'")
    }

    private static func areOneFile(_ one: PathBytes, _ other: PathBytes) -> Bool {
        var here = stat()
        var there = stat()
        guard one.withCString({ lstat($0, &here) }) == 0, other.withCString({ lstat($0, &there) }) == 0 else {
            return false
        }
        return here.st_dev == there.st_dev && here.st_ino == there.st_ino
    }

    /// Renames; 0, or the errno, which is EEXIST when there is a file of the new name.
    static func renameWithoutReplacing(_ from: PathBytes, _ to: PathBytes) -> Int32 {
        let error = from.withCString { from in to.withCString { cal_rename_noreplace(from, $0) } }
        guard error == EINVAL || error == ENOSYS else { return error }
        // A file system without RENAME_NOREPLACE: a hard link refuses an existing name just as surely.
        guard from.withCString({ from in to.withCString { link(from, $0) } }) == 0 else { return errno }
        return from.withCString { unlink($0) } == 0 ? 0 : errno
    }

    /// Puts the folder's new entry on the disk.
    func syncFolder() {
        let folder = path.parent.withCString { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard folder >= 0 else { return }
        fsync(folder)
        close(folder)
    }
}

import CAlightLinux
import FileEvents
import Glibc
import Settling

/// Copies one regular file to a temporary name beside its destination, which it gets when it is complete.
struct FileCopy {
    let source: PathBytes
    let destination: PathBytes
    let stop: StopSignal
    /// When the rule's time-out ends the copy.
    let deadline: ContinuousClock.Instant
    /// Whether the new file is to belong to whom the old one does, as far as that may be granted.
    var keepsOwner = false

    /// UTIME_OMIT of utimensat(2), a macro that Swift does not see: leave this time alone.
    private static let omit = (1 << 30) - 2

    enum Ending {
        /// Complete, flushed, with the source's mode and times, under this temporary name; and what was copied.
        case copied(PathBytes, of: Origin)
        case interrupted
        /// The time-out came first; nothing is left.
        case timedOut
        /// The source changed while it was copied; nothing is left.
        case changed
        case notRegular
        case gone
    }

    /// Which content of which file was copied.
    struct Origin {
        fileprivate let facts: cal_stat

        /// Whether the path still names this content.
        func isStill(at path: PathBytes) -> Bool {
            var now = cal_stat()
            return path.withCString({ cal_stat_path($0, &now) }) == 0 && FileCopy.isSame(facts, now)
        }
    }

    private static func isSame(_ one: cal_stat, _ other: cal_stat) -> Bool {
        one.inode == other.inode && one.device_major == other.device_major && one.device_minor == other.device_minor
            && one.size == other.size && one.mtime_seconds == other.mtime_seconds
            && one.mtime_nanoseconds == other.mtime_nanoseconds
    }

    /// Copies; on any failure the temporary file is removed.
    func run() throws(FileFault) -> Ending {
        let input = source.withCString { open($0, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) }
        guard input >= 0 else {
            // A symbolic link; a socket or a device without a driver.
            if errno == ELOOP || errno == ENXIO { return .notRegular }
            if errno == ENOENT { return .gone }
            throw FileFault(errno, "cannot open '\(source)'")
        }
        defer { close(input) }
        var before = cal_stat()
        let error = cal_stat_descriptor(input, &before)
        guard error == 0 else { throw FileFault(error, "cannot look at '\(source)'") }
        guard before.mode & UInt32(S_IFMT) == UInt32(S_IFREG) else { return .notRegular }

        let (output, name) = try makeOutput()
        var isKept = false
        defer {
            close(output)
            if !isKept { name?.withCString { _ = unlink($0) } }
        }
        guard try transfer(input, output) else { return stop.isRaised ? .interrupted : .timedOut }
        var after = cal_stat()
        guard cal_stat_descriptor(input, &after) == 0, Self.isSame(before, after) else { return .changed }
        // Set-user-id and its like are the owner's to grant: without him they would turn a user's program into ours.
        let isOwners = keepsOwner && fchown(output, before.uid, before.gid) == 0
        fchmod(output, before.mode & (isOwners ? 0o7777 : 0o777))
        var times = [
            timespec(tv_sec: 0, tv_nsec: Self.omit),
            timespec(tv_sec: Int(before.mtime_seconds), tv_nsec: Int(before.mtime_nanoseconds)),
        ]
        futimens(output, &times)
        guard fsync(output) == 0 else { throw FileFault(errno, "cannot flush the copy beside '\(destination)'") }
        let temporary = if let name { name } else { try withTemporaryName { cal_link_descriptor(output, $0) } }
        isKept = true
        return .copied(temporary, of: Origin(facts: before))
    }

    private var isOver: Bool { stop.isRaised || ContinuousClock.now > deadline }

    /// A hidden name in the same folder, which no rule sees unless it asks for everything.
    static func temporaryName(beside path: PathBytes) -> PathBytes {
        let suffix = String(UInt64.random(in: 0...UInt64.max), radix: 36)
        return path.parent.appending(
            Array(".".utf8) + path.lastComponent.prefix(200) + Array(".\(suffix).alight-tmp".utf8))
    }

    /// A new file of mode 0600 in the destination's folder, which has no name until it is complete.
    ///
    /// So nothing is left of it when the program dies. Where the file system has
    /// no such files it has a hidden name, so that no rule takes it for a drop.
    private func makeOutput() throws(FileFault) -> (descriptor: Int32, name: PathBytes?) {
        let unnamed = destination.parent.withCString { cal_open_unnamed($0, 0o600) }
        if unnamed >= 0 { return (unnamed, nil) }
        var descriptor: Int32 = -1
        let name = try withTemporaryName { path in
            descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
            return descriptor >= 0 ? 0 : errno
        }
        return (descriptor, name)
    }

    /// Finds a temporary name that is not taken: the call has an errno, or 0.
    private func withTemporaryName(_ make: (UnsafePointer<CChar>) -> Int32) throws(FileFault) -> PathBytes {
        for _ in 0..<100 {
            let path = Self.temporaryName(beside: destination)
            let error = path.withCString { make($0) }
            if error == 0 { return path }
            guard error == EEXIST else { throw FileFault(error, "cannot create '\(path)'") }
        }
        throw FileFault(EEXIST, "cannot create a temporary file beside '\(destination)'")
    }

    /// Copies the bytes: shared blocks, else in the kernel, else through a buffer.
    ///
    /// False when stopped or out of time.
    private func transfer(_ input: Int32, _ output: Int32) throws(FileFault) -> Bool {
        if cal_clone(input, output) == 0 { return true }
        while true {
            if isOver { return false }
            let copied = cal_copy_range(input, output, 16 << 20)
            if copied == 0 { break }
            guard copied < 0 else { continue }
            switch Int32(-copied) {
            case EINTR: continue
            case EXDEV, EINVAL, ENOSYS, EOPNOTSUPP, EBADF: return try transferThroughBuffer(input, output)
            default: throw FileFault(Int32(-copied), "cannot copy to the folder of '\(destination)'")
            }
        }
        // Some file systems (procfs) say 0 at once: what copy_file_range could not see, read can.
        return try transferThroughBuffer(input, output)
    }

    private func transferThroughBuffer(_ input: Int32, _ output: Int32) throws(FileFault) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        while true {
            if isOver { return false }
            let count = buffer.withUnsafeMutableBytes { read(input, $0.baseAddress, $0.count) }
            if count == 0 { return true }
            guard count > 0 else {
                if errno == EINTR { continue }
                throw FileFault(errno, "cannot read '\(source)'")
            }
            var written = 0
            while written < count {
                let step = buffer.withUnsafeBytes {
                    write(output, $0.baseAddress.map { $0 + written }, count - written)
                }
                guard step > 0 else {
                    if errno == EINTR { continue }
                    throw FileFault(errno, "cannot write to the folder of '\(destination)'")
                }
                written += step
            }
        }
    }
}

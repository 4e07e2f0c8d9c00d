import CAlightLinux
import Glibc
import System

// Calls in which an error ends the work on a file, with a message.

extension FileError {
    /// Runs a call, and adds the operation to its error.
    fileprivate static func of<Result>(
        _ operation: @autoclosure () -> String, _ call: () throws(SystemError) -> Result
    ) throws(FileError) -> Result {
        do throws(SystemError) {
            return try call()
        } catch {
            throw FileError(error.errno, operation())
        }
    }
}

extension OpenFile {
    /// Returns the metadata of the open file.
    func metadata() throws(FileError) -> Snapshot {
        try FileError.of("cannot stat an open file") { () throws(SystemError) in try snapshot() }
    }

    /// The names of the extended attributes; empty if they cannot be listed.
    var attributeNames: [PathBytes] {
        var names = [CChar](repeating: 0, count: Int(max(0, cal_list_open_attributes(descriptor, nil, 0))))
        let filled = names.isEmpty ? 0 : cal_list_open_attributes(descriptor, &names, names.count)
        return names.prefix(Int(max(0, filled))).split(separator: 0).map { name in
            PathBytes(name.map { UInt8(bitPattern: $0) })
        }
    }

    /// Returns the value of an extended attribute; nil if it cannot be read.
    func attribute(_ name: PathBytes) -> [UInt8]? {
        name.withCString { name in
            var value = [UInt8](repeating: 0, count: Int(max(0, cal_read_open_attribute(descriptor, name, nil, 0))) + 1)
            let read = cal_read_open_attribute(descriptor, name, &value, value.count)
            return read < 0 ? nil : Array(value[..<Int(read)])
        }
    }
}

extension DirectoryHandle {
    /// Opens a directory by its path and follows links, as root only those that no other user can replace.
    ///
    /// - Throws: A ``FileError``: `missing` if the directory does not exist.
    static func opened(_ path: PathBytes, orElse missing: FileError) throws(FileError) -> DirectoryHandle {
        do throws(SystemError) {
            return try DirectoryHandle(opening: path)
        } catch {
            if error.errno == ENOENT || error.errno == ENOTDIR { throw missing }
            throw FileError(untrustedLinkOn: path) ?? FileError(error.errno, "cannot open the directory '\(path)'")
        }
    }

    /// Returns the metadata of a name, of a symbolic link itself; nil if there is nothing of that name.
    func metadata(of name: PathBytes) throws(FileError) -> Snapshot? {
        try FileError.of("cannot stat '\(path(of: name))'") { () throws(SystemError) in try stat(name) }
    }

    /// Returns the names in the directory, without `.` and `..`.
    func names() throws(FileError) -> [PathBytes] {
        try FileError.of("cannot list '\(path)'") { () throws(SystemError) in
            try KernelFileSystem().names(following: ".", in: descriptor)
        }
    }

    /// Opens a name without following a link.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - kind: The kind of open.
    ///   - special: Returns the error for an errno with a meaning of its own.
    /// - Returns: The open file.
    /// - Throws: A ``FileError`` if the file cannot be opened.
    func opened(
        _ name: PathBytes, _ kind: cal_opening, orElse special: (Int32) -> FileError? = { _ in nil }
    ) throws(FileError) -> OpenFile {
        do throws(SystemError) {
            return try open(name, kind)
        } catch {
            throw special(error.errno) ?? FileError(error.errno, "cannot open '\(path(of: name))'")
        }
    }

    /// Opens a directory in this one, without following a link; nil if there is none, or it cannot be opened.
    func openDirectory(_ name: PathBytes) -> DirectoryHandle? {
        (try? open(name, CAL_OPEN_DIRECTORY)).map { DirectoryHandle($0, path(of: name)) }
    }

    /// Opens a directory in this one, unless something is mounted there.
    func openUnmounted(_ name: PathBytes) throws(FileError) -> DirectoryHandle {
        let opened = name.withCString { cal_open_unmounted(descriptor, $0) }
        guard opened >= 0 else { throw FileError(-opened, "cannot open '\(path(of: name))'") }
        return DirectoryHandle(opened, path(of: name))
    }

    /// Returns the target of a symbolic link; nil with the errno set if it cannot be read.
    func target(of name: PathBytes) -> PathBytes? {
        var target = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
        let length = name.withCString { readlinkat(descriptor, $0, &target, target.count) }
        return length < 0 ? nil : PathBytes(target[..<length].map { UInt8(bitPattern: $0) })
    }

    /// Creates a file that must not exist; returns its descriptor, or -1 with the errno set.
    func create(_ name: PathBytes, _ access: Int32 = O_WRONLY, mode: UInt32) -> Int32 {
        name.withCString { openat(descriptor, $0, access | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode) }
    }

    /// Creates a directory; returns 0 or the errno.
    func makeDirectory(_ name: PathBytes, mode: UInt32) -> Int32 {
        name.withCString { mkdirat(descriptor, $0, mode) } == 0 ? 0 : errno
    }

    /// Creates a symbolic link; returns 0 or the errno.
    func makeLink(_ name: PathBytes, to target: PathBytes) -> Int32 {
        target.withCString { target in name.withCString { symlinkat(target, descriptor, $0) } } == 0 ? 0 : errno
    }

    /// Removes an empty directory; returns 0 or the errno.
    @discardableResult
    func removeDirectory(_ name: PathBytes) -> Int32 {
        name.withCString { unlinkat(descriptor, $0, AT_REMOVEDIR) } == 0 ? 0 : errno
    }
}

/// Reading and writing at an offset, continued after an interruption by a signal.
enum FileIO {
    /// Reads up to the size of the buffer; returns the number of bytes, 0 at the end, or -1 with the errno set.
    static func read(_ descriptor: Int32, into buffer: Slice<UnsafeMutableRawBufferPointer>, at offset: Int64) -> Int {
        let buffer = UnsafeMutableRawBufferPointer(rebasing: buffer)
        while true {
            let count = pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset))
            if count >= 0 || errno != EINTR { return count }
        }
    }

    /// Writes all bytes; returns 0 or the errno.
    static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32, at offset: Int64) -> Int32 {
        var written = 0
        while written < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
            let count = pwrite(descriptor, rest.baseAddress, rest.count, off_t(offset) + off_t(written))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return errno }
            written += count
        }
        return 0
    }
}

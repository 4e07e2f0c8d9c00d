import Glibc
package import System

/// A temporary directory for one test, removed at the end.
package struct TemporaryTree: ~Copyable {
    package let root: PathBytes

    package init() { root = TestFile.makeTemporaryDirectory() }

    deinit { TestFile.removeTree(root) }

    package func path(_ relative: String) -> PathBytes { root.appending(relative) }
}

/// Calls the body with a new temporary directory.
package func withTempTree<Result>(_ body: (borrowing TemporaryTree) throws -> Result) rethrows -> Result {
    let tree = TemporaryTree()
    return try body(tree)
}

/// File operations for tests, by exact bytes and without Foundation.
package enum TestFile {
    /// Creates a new temporary directory, which the caller removes.
    package static func makeTemporaryDirectory(_ word: String = "test") -> PathBytes {
        var template = Array("/tmp/alight-\(word)-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { preconditionFailure("no temporary directory: errno \(errno)") }
        return PathBytes(template.dropLast().map { UInt8(bitPattern: $0) })
    }

    /// Creates the directory and its missing ancestors.
    package static func makeDirectory(_ path: PathBytes) {
        if path.withCString({ mkdir($0, 0o755) }) == 0 || errno == EEXIST { return }
        if errno == ENOENT {
            makeDirectory(path.parent)
            _ = path.withCString { mkdir($0, 0o755) }
        }
    }

    /// Creates or truncates the file, writes the string and closes the file.
    ///
    /// Missing directories are created.
    package static func write(_ path: PathBytes, _ text: String) { write(path, Array(text.utf8)) }

    package static func write(_ path: PathBytes, _ bytes: [UInt8], appending: Bool = false, mode: UInt32 = 0o644) {
        makeDirectory(path.parent)
        let flags = O_WRONLY | O_CREAT | O_CLOEXEC | (appending ? O_APPEND : O_TRUNC)
        Descriptors.write {
            let descriptor = path.withCString { open($0, flags, mode) }
            precondition(descriptor >= 0, "cannot write \(path): errno \(errno)")
            put(descriptor, bytes)
            close(descriptor)
        }
    }

    package static func put(_ descriptor: Int32, _ bytes: [UInt8]) {
        let error = tryPut(descriptor, bytes[...])
        precondition(error == 0, "cannot write: errno \(error)")
    }

    /// Writes all bytes.
    ///
    /// Returns 0 or the errno.
    package static func tryPut(_ descriptor: Int32, _ bytes: ArraySlice<UInt8>) -> Int32 {
        var rest = bytes
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { return count < 0 ? errno : EIO }
            rest = rest.dropFirst(count)
        }
        return 0
    }

    /// Returns the content; nil if the file does not exist or can't be read.
    package static func read(_ path: PathBytes) -> [UInt8]? {
        let descriptor = path.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = buffer.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { return count == 0 ? content : nil }
            content += buffer[..<count]
        }
    }

    /// Returns the content as a string; nil if the file does not exist or can't be read.
    package static func text(_ path: PathBytes) -> String? { read(path).map { String(decoding: $0, as: UTF8.self) } }

    package static func exists(_ path: PathBytes) -> Bool {
        var status = stat()
        return path.withCString { lstat($0, &status) } == 0
    }

    /// Returns the names in a directory, sorted; empty if it does not exist.
    package static func names(in directory: PathBytes) -> [[UInt8]] {
        guard let stream = directory.withCString({ opendir($0) }) else { return [] }
        defer { closedir(stream) }
        var names: [[UInt8]] = []
        while let entry = readdir(stream) {
            guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { break }
            let start = UnsafeRawPointer(entry) + offset
            let length = strlen(start.assumingMemoryBound(to: CChar.self))
            let name = Array(UnsafeRawBufferPointer(start: start, count: length))
            if name != [.dot], name != [.dot, .dot] { names.append(name) }
        }
        return names.sorted { $0.lexicographicallyPrecedes($1) }
    }

    /// Returns the inode, the modification time and a hash of the content of each file in a directory.
    package static func states(
        in directory: PathBytes, where isIncluded: ([UInt8]) -> Bool = { _ in true }
    ) -> [[UInt8]: String] {
        var states: [[UInt8]: String] = [:]
        for name in names(in: directory) where isIncluded(name) {
            var status = stat()
            _ = directory.appending(name).withCString { lstat($0, &status) }
            states[name] = "\(status.st_ino) \(status.st_mtim) \((read(directory.appending(name)) ?? []).hashValue)"
        }
        return states
    }

    package static func removeTree(_ path: PathBytes) {
        var status = stat()
        guard path.withCString({ lstat($0, &status) }) == 0 else { return }
        if status.st_mode & S_IFMT == S_IFDIR {
            _ = path.withCString { chmod($0, 0o700) }
            for name in names(in: path) { removeTree(path.appending(name)) }
            _ = path.withCString { rmdir($0) }
        } else {
            _ = path.withCString { unlink($0) }
        }
    }

    /// Copies files, directories and modes.
    ///
    /// Links are not followed.
    package static func copyTree(_ from: PathBytes, _ to: PathBytes) {
        var status = stat()
        guard from.withCString({ lstat($0, &status) }) == 0 else { return }
        if status.st_mode & S_IFMT == S_IFDIR {
            makeDirectory(to)
            for name in names(in: from) { copyTree(from.appending(name), to.appending(name)) }
        } else if let content = read(from) {
            write(to, content, mode: status.st_mode & 0o777)
        }
    }

    private typealias SetAttribute =
        @convention(c) (
            UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeRawPointer?, Int, Int32
        ) -> Int32

    /// Sets an extended attribute without following a link.
    ///
    /// Returns false if the file system refuses.
    ///
    /// Swift's Glibc module lacks the call, and Alight itself never makes it.
    package static func setAttribute(_ path: PathBytes, _ name: PathBytes, _ value: [UInt8]) -> Bool {
        guard let symbol = dlsym(nil, "lsetxattr") else { preconditionFailure("glibc has lsetxattr") }
        let set = unsafeBitCast(symbol, to: SetAttribute.self)
        return path.withCString { path in
            name.withCString { name in value.withUnsafeBytes { set(path, name, $0.baseAddress, $0.count, 0) } } == 0
        }
    }
}

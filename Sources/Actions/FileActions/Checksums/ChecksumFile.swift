import ActionAPI
import CAlightLinux
import Digests
import Glibc
import Rules
import System

/// The list of a directory: a file with the checksums of other files.
struct ChecksumFile {
    let directory: DirectoryHandle
    let kind: Checksum

    /// A file name with its checksum; nil removes the name.
    typealias Sum = (name: PathBytes, digits: String?)

    /// The maximum size in bytes; a larger file is not a checksum file.
    private static let most = 64 << 20

    private var name: PathBytes { PathBytes(kind.listName) }
    var path: PathBytes { directory.path(of: name) }

    /// Returns the lines of the file; nil if it does not exist.
    func lines() throws(FileError) -> ChecksumLines? { try content().map { ChecksumLines($0, kind) } }

    /// Updates checksums in the file, safely even if others do so at the same time; the file is replaced as a whole.
    ///
    /// - Parameters:
    ///   - sums: The changes.
    ///   - limit: The limit of the wait for other processes.
    /// - Returns: Whether the file was written; false if its content would be the same.
    /// - Throws: A ``FileError`` if a system call fails, or another process locked the directory until the limit.
    func update(_ sums: [Sum], within limit: WorkLimit) throws(FileError) -> Bool {
        // The lock belongs to this open descriptor, so it works between threads as well as between processes.
        let lock = openat(directory.descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard lock >= 0 else { throw FileError(errno, "cannot open '\(directory.path)'") }
        defer { close(lock) }
        // Any other error: a file system without locks, whose directory is assumed not to be shared.
        if FileLock.acquire(lock, pause: 2_000, while: { !limit.isOver }) == EWOULDBLOCK {
            throw FileError(
                limit.stop.isRaised
                    ? .interrupted("stopped while waiting for the directory")
                    : .timedOut("the directory of '\(path)' was locked until the timeout"))
        }
        let before = try content() ?? []
        var lines = ChecksumLines(before, kind)
        for sum in sums { lines.sums[sum.name] = sum.digits }
        let text = lines.text
        if text != before { try replace(with: text) }
        return text != before
    }

    /// Replaces the file atomically; if a system call fails, the old file remains.
    private func replace(with bytes: [UInt8]) throws(FileError) {
        let staged = try StagedFile(in: directory, for: name, mode: 0o666)
        // Users who could read the old file can read the new one.
        if let old = try directory.metadata(of: name), old.type == .file {
            fchmod(staged.descriptor, mode_t(old.mode & 0o777))
        }
        let writeError = bytes.withUnsafeBytes { FileIO.write($0, to: staged.descriptor, at: 0) }
        guard writeError == 0 else { throw FileError(writeError, "cannot write to '\(path)'") }
        try staged.flush()
        let error = directory.rename(try staged.name(), to: directory, name, CAL_RENAME_REPLACING)
        guard error == 0 else { throw FileError(error, "cannot rename to '\(path)'") }
        staged.keep()
        directory.flush()
    }

    /// Returns the content; nil if the file does not exist.
    ///
    /// - Throws: A ``FileError`` if the file cannot be read, is not a regular file, or is too large.
    private func content() throws(FileError) -> [UInt8]? {
        let file: OpenFile
        do throws(FileError) {
            file = try directory.opened(name, CAL_OPEN_READING)
        } catch {
            if error.errno == ENOENT { return nil }
            throw error
        }
        guard try file.metadata().type == .file else { throw FileError(EINVAL, "'\(path)' is not a regular file") }
        guard let bytes = ProcFile.bytes(of: file.descriptor, limit: Self.most) else {
            throw FileError(errno, "cannot read '\(path)'")
        }
        guard bytes.count <= Self.most else { throw FileError(EFBIG, "cannot read '\(path)'") }
        return bytes
    }
}

/// The lines of a checksum file, in the format of sha256sum and similar tools.
struct ChecksumLines {
    /// The checksums of files, by name.
    var sums: [PathBytes: String] = [:]
    /// Comments and other lines without a checksum, which stay at the top of the file.
    private var others: [[UInt8]] = []

    init(_ bytes: [UInt8], _ kind: Checksum) {
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            let line = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
            guard let (digits, name) = Self.sum(in: line, kind) else {
                if !line.isEmpty { others.append(Array(line)) }
                continue
            }
            sums[name] = digits
        }
    }

    /// The content of the whole file, sorted by name.
    var text: [UInt8] {
        others.flatMap { $0 + [UInt8(ascii: "\n")] }
            + sums.sorted { $0.key < $1.key }.flatMap { Self.line(of: $0.value, for: $0.key) }
    }

    // MARK: Single lines

    /// Formats a line; a name with a backslash or a line break is escaped, which a leading backslash indicates.
    static func line(of digits: String, for name: PathBytes) -> [UInt8] {
        let escaped = name.bytes.flatMap { byte in
            escapes.first { $0.byte == byte }.map { [backslash, $0.letter] } ?? [byte]
        }
        let mark = escaped.count == name.bytes.count ? "" : "\\"
        return Array("\(mark)\(digits)  ".utf8) + escaped + [UInt8(ascii: "\n")]
    }

    /// Returns the checksum and the name: `SUM  NAME`, `SUM *NAME` or `SHA256 (NAME) = SUM`.
    private static func sum(in line: ArraySlice<UInt8>, _ kind: Checksum) -> (String, PathBytes)? {
        let isEscaped = line.first == backslash
        let line = isEscaped ? line.dropFirst() : line
        var name: ArraySlice<UInt8>
        let sum: String
        if let digits = digits(line.prefix(kind.digits), kind) {
            (sum, name) = (digits, line.dropFirst(kind.digits))
            guard name.starts(with: "  ".utf8) || name.starts(with: " *".utf8) else { return nil }
            name = name.dropFirst(2)
        } else {
            let start = kind == .b2 ? "BLAKE2b (" : "\(kind.rawValue.uppercased()) ("
            guard let digits = digits(line.suffix(kind.digits), kind) else { return nil }
            (sum, name) = (digits, line.dropLast(kind.digits))
            guard name.starts(with: start.utf8) else { return nil }
            name = name.dropFirst(start.utf8.count)
            guard name.suffix(4).elementsEqual(") = ".utf8) else { return nil }
            name = name.dropLast(4)
        }
        return name.isEmpty ? nil : (sum, isEscaped ? unescaped(name) : PathBytes(name))
    }

    /// Returns the digits in lower case; nil if they are not a checksum of that kind.
    static func digits(_ text: some Collection<UInt8>, _ kind: Checksum) -> String? {
        guard text.count == kind.digits, text.allSatisfy(\.isHexadecimalDigit) else { return nil }
        return String(decoding: text, as: UTF8.self).lowercased()
    }

    private static func unescaped(_ name: ArraySlice<UInt8>) -> PathBytes {
        var (bytes, rest): ([UInt8], ArraySlice<UInt8>) = ([], name)
        while let byte = rest.popFirst() {
            if byte != backslash {
                bytes.append(byte)
            } else if let letter = rest.popFirst() {
                bytes.append(escapes.first { $0.letter == letter }?.byte ?? letter)
            }
        }
        return PathBytes(bytes)
    }

    private static let backslash = UInt8(ascii: "\\")
    /// The bytes that follow a backslash as a letter.
    private static let escapes: [(byte: UInt8, letter: UInt8)] = [
        (backslash, backslash), (UInt8(ascii: "\n"), UInt8(ascii: "n")), (UInt8(ascii: "\r"), UInt8(ascii: "r")),
    ]
}

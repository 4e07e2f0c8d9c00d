import Glibc

/// A path as the kernel knows it: bytes without NUL, in no particular encoding.
///
/// Two paths are equal when their bytes are, so names that only look alike
/// (composed and decomposed accents) stay apart, and names that are not UTF-8
/// survive from the kernel to `execve`. Text is made only to be shown.
public struct PathBytes: Hashable, Sendable {
    /// The bytes, without a terminating NUL.
    public var bytes: [UInt8]

    /// Makes a path of the bytes as they are; nothing is normalised.
    public init(_ bytes: some Sequence<UInt8>) { self.bytes = Array(bytes) }

    /// Makes a path of a text's UTF-8.
    public init(_ text: String) { bytes = Array(text.utf8) }

    public func hash(into hasher: inout Hasher) {
        bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    }

    /// The bytes after the last slash; the whole path when there is none.
    public var lastComponent: ArraySlice<UInt8> {
        guard let slash = bytes.lastIndex(of: .slash) else { return bytes[...] }
        return bytes[(slash + 1)...]
    }

    /// The folder that holds the path; `/` for an entry of the root folder, and for `/` itself.
    public var parent: PathBytes {
        guard let slash = bytes.lastIndex(of: .slash) else { return PathBytes(".") }
        return slash == 0 ? PathBytes("/") : PathBytes(bytes[..<slash])
    }

    /// The path itself, the folder that it is in, the one above that, and so on to the first of all.
    package var andParents: some Sequence<PathBytes> {
        sequence(first: self) { path in
            let parent = path.parent
            return parent == path ? nil : parent
        }
    }

    /// The path of an entry of this folder.
    public func appending(_ name: some Collection<UInt8>) -> PathBytes {
        var joined: [UInt8] = []
        joined.reserveCapacity(bytes.count + 1 + name.count)
        joined.append(contentsOf: bytes)
        if joined.last != .slash { joined.append(.slash) }
        joined.append(contentsOf: name)
        return PathBytes(joined)
    }

    /// The path of an entry of this folder, the name given as text.
    public func appending(_ name: String) -> PathBytes { appending(Array(name.utf8)) }

    /// The path that is meant in this folder: an absolute one is itself.
    public func resolving(_ path: some Collection<UInt8>) -> PathBytes {
        path.first == .slash ? PathBytes(Array(path)) : appending(path)
    }

    /// Whether this path is the folder itself or something below it.
    public func isInside(_ folder: PathBytes) -> Bool {
        guard bytes.starts(with: folder.bytes) else { return false }
        return bytes.count == folder.bytes.count || folder.bytes.last == .slash || bytes[folder.bytes.count] == .slash
    }

    /// Whether it is a path as rows have them: absolute, and with no `..` that leads out of a directory.
    package var isAbsoluteName: Bool {
        bytes.first == .slash && !bytes.split(separator: .slash).contains { $0.elementsEqual([.dot, .dot]) }
    }

    /// The part of this path below the folder, without a leading slash; nil when it is not inside.
    public func relative(to folder: PathBytes) -> ArraySlice<UInt8>? {
        guard isInside(folder) else { return nil }
        let rest = bytes[folder.bytes.count...]
        return rest.first == .slash ? rest.dropFirst() : rest
    }

    /// The path with `.`, `..`, doubled and trailing slashes taken out by name alone.
    ///
    /// Symbolic links are not looked at: `link/..` becomes the link's folder.
    public var normalized: PathBytes {
        if isCertainlyNormal { return self }
        var kept: [ArraySlice<UInt8>] = []
        let isAbsolute = bytes.first == .slash
        for part in bytes.split(separator: .slash) {
            if part.elementsEqual([.dot]) { continue }
            if part.elementsEqual([.dot, .dot]) {
                if let last = kept.last, !last.elementsEqual([.dot, .dot]) {
                    kept.removeLast()
                } else if !isAbsolute {
                    kept.append(part)
                }
                continue
            }
            kept.append(part)
        }
        let joined = Array(kept.joined(separator: [.slash]))
        if isAbsolute { return PathBytes([.slash] + joined) }
        return joined.isEmpty ? PathBytes(".") : PathBytes(joined)
    }

    /// Whether no name in it is empty or starts with a dot.
    private var isCertainlyNormal: Bool {
        guard let first = bytes.first, first != .dot else { return false }
        var before: UInt8?
        for byte in bytes {
            if before == .slash, byte == .slash || byte == .dot { return false }
            before = byte
        }
        return before != .slash
    }

    /// The path as text when it is UTF-8, else nil.
    public var text: String? { String(validating: bytes, as: UTF8.self) }

    /// Calls the closure with the bytes as a C string.
    ///
    /// Inlinable, so that nobody is asked at run time for the type of what the closure returns.
    @inlinable
    public func withCString<Result>(_ body: (UnsafePointer<CChar>) throws -> Result) rethrows -> Result {
        // On the stack, unless the path is very long: this comes before every system call.
        try withUnsafeTemporaryAllocation(of: CChar.self, capacity: bytes.count + 1) { terminated in
            bytes.withUnsafeBytes { UnsafeMutableRawBufferPointer(terminated).copyMemory(from: $0) }
            terminated[bytes.count] = 0
            guard let base = terminated.baseAddress else { preconditionFailure("a terminated path is never empty") }
            return try body(base)
        }
    }
}

extension PathBytes: CustomStringConvertible {
    /// The path to show: bytes that are not UTF-8 become U+FFFD, so it may name no file.
    public var description: String { String(decoding: bytes, as: UTF8.self) }
}

extension PathBytes: ExpressibleByStringLiteral {
    public init(stringLiteral value: String) { self.init(value) }
}

extension PathBytes: Comparable {
    public static func < (left: PathBytes, right: PathBytes) -> Bool {
        // Large sets of paths are sorted; the generic comparison takes several times as long.
        let length = min(left.bytes.count, right.bytes.count)
        let order = left.bytes.withUnsafeBytes { left in
            right.bytes.withUnsafeBytes { right in
                guard let left = left.baseAddress, let right = right.baseAddress else { return 0 as Int32 }
                return memcmp(left, right, length)
            }
        }
        return order == 0 ? left.bytes.count < right.bytes.count : order < 0
    }
}

extension UInt8 {
    /// `/`.
    public static var slash: UInt8 { UInt8(ascii: "/") }
    /// `.`.
    public static var dot: UInt8 { UInt8(ascii: ".") }
}

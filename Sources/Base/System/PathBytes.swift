import Glibc

/// A path in the form that the kernel uses: bytes without NUL, in no particular encoding.
///
/// Two paths are equal if their bytes are. So names that only look alike (composed and decomposed accents) stay
/// distinct, and names that are not UTF-8 pass from the kernel to `execve` unchanged. Strings are created only for
/// display.
public struct PathBytes: Hashable, Sendable {
    /// The bytes, without a terminating NUL.
    public var bytes: [UInt8]

    /// Creates a path of the bytes without normalizing them.
    public init(_ bytes: some Sequence<UInt8>) { self.bytes = Array(bytes) }

    /// Creates a path of the UTF-8 of a string.
    public init(_ text: String) { bytes = Array(text.utf8) }

    public func hash(into hasher: inout Hasher) { bytes.withUnsafeBytes { hasher.combine(bytes: $0) } }

    /// The bytes after the last slash; the whole path if there is none.
    public var lastComponent: ArraySlice<UInt8> {
        guard let slash = bytes.lastIndex(of: .slash) else { return bytes[...] }
        return bytes[(slash + 1)...]
    }

    /// The directory that contains the path; `/` for an entry of the root directory, and for `/` itself.
    public var parent: PathBytes {
        guard let slash = bytes.lastIndex(of: .slash) else { return PathBytes(".") }
        return slash == 0 ? PathBytes("/") : PathBytes(bytes[..<slash])
    }

    /// The path itself, its directory, the parent of that, and so on up to the topmost directory.
    package var andParents: some Sequence<PathBytes> {
        sequence(first: self) { path in
            let parent = path.parent
            return parent == path ? nil : parent
        }
    }

    /// Returns the path of an entry of this directory.
    public func appending(_ name: some Collection<UInt8>) -> PathBytes {
        var joined: [UInt8] = []
        joined.reserveCapacity(bytes.count + 1 + name.count)
        joined.append(contentsOf: bytes)
        if joined.last != .slash { joined.append(.slash) }
        joined.append(contentsOf: name)
        return PathBytes(joined)
    }

    /// Returns the path of an entry of this directory, with the name as a string.
    public func appending(_ name: String) -> PathBytes { appending(Array(name.utf8)) }

    /// Returns the path relative to this directory; an absolute path is returned unchanged.
    public func resolving(_ path: some Collection<UInt8>) -> PathBytes {
        path.first == .slash ? PathBytes(Array(path)) : appending(path)
    }

    /// Whether this path is the directory itself or is below it.
    public func isInside(_ directory: PathBytes) -> Bool {
        guard bytes.starts(with: directory.bytes) else { return false }
        return bytes.count == directory.bytes.count || directory.bytes.last == .slash
            || bytes[directory.bytes.count] == .slash
    }

    /// Whether the path has the form of stored paths: absolute, and without `..` components that lead out of a
    /// directory.
    package var isAbsoluteName: Bool {
        bytes.first == .slash && !bytes.split(separator: .slash).contains { $0.elementsEqual([.dot, .dot]) }
    }

    /// Returns the part of this path below the directory, without a leading slash; nil if it is not inside.
    public func relative(to directory: PathBytes) -> ArraySlice<UInt8>? {
        guard isInside(directory) else { return nil }
        let rest = bytes[directory.bytes.count...]
        return rest.first == .slash ? rest.dropFirst() : rest
    }

    /// The path without `.`, `..`, doubled and trailing slashes, by name alone.
    ///
    /// Symbolic links are not resolved: `link/..` becomes the directory of the link.
    public var normalized: PathBytes {
        if isCertainlyNormal { return self }
        var parts: [ArraySlice<UInt8>] = []
        let isAbsolute = bytes.first == .slash
        for part in bytes.split(separator: .slash) {
            if part.elementsEqual([.dot]) { continue }
            if part.elementsEqual([.dot, .dot]) {
                if let last = parts.last, !last.elementsEqual([.dot, .dot]) {
                    parts.removeLast()
                } else if !isAbsolute {
                    parts.append(part)
                }
                continue
            }
            parts.append(part)
        }
        let joined = Array(parts.joined(separator: [.slash]))
        if isAbsolute { return PathBytes([.slash] + joined) }
        return joined.isEmpty ? PathBytes(".") : PathBytes(joined)
    }

    /// Whether no name in the path is empty or starts with a dot.
    private var isCertainlyNormal: Bool {
        guard let first = bytes.first, first != .dot else { return false }
        var before: UInt8?
        for byte in bytes {
            if before == .slash, byte == .slash || byte == .dot { return false }
            before = byte
        }
        return before != .slash
    }

    /// The path as a string if it is UTF-8; nil otherwise.
    public var text: String? { String(validating: bytes, as: UTF8.self) }

    /// Calls the closure with the bytes as a C string.
    ///
    /// Inlinable, so that specialization avoids a lookup of the closure's result type at run time.
    @inlinable
    public func withCString<Result>(_ body: (UnsafePointer<CChar>) throws -> Result) rethrows -> Result {
        // The buffer is on the stack unless the path is very long, because this precedes every system call.
        try withUnsafeTemporaryAllocation(of: CChar.self, capacity: bytes.count + 1) { terminated in
            bytes.withUnsafeBytes { UnsafeMutableRawBufferPointer(terminated).copyMemory(from: $0) }
            terminated[bytes.count] = 0
            guard let base = terminated.baseAddress else { preconditionFailure("a terminated path is never empty") }
            return try body(base)
        }
    }
}

extension PathBytes: CustomStringConvertible {
    /// The path for display: bytes that are not UTF-8 become U+FFFD, so it may not name an existing file.
    public var description: String { String(decoding: bytes, as: UTF8.self) }
}

extension PathBytes: Codable {
    /// Decodes a string, or an array of bytes for a path that is not UTF-8.
    ///
    /// - Parameter decoder: The decoder of one value.
    /// - Throws: An error if the value is neither.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let text = try? container.decode(String.self) {
            self.init(text)
        } else {
            self.init(try container.decode([UInt8].self))
        }
    }

    /// Encodes the path as a string if it is UTF-8, and otherwise as an array of bytes.
    ///
    /// - Parameter encoder: The encoder of one value.
    /// - Throws: The errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if let text { try container.encode(text) } else { try container.encode(bytes) }
    }
}

extension PathBytes: ExpressibleByStringLiteral {
    public init(stringLiteral value: String) { self.init(value) }
}

extension PathBytes: Comparable {
    public static func < (left: PathBytes, right: PathBytes) -> Bool {
        left.bytes.withUnsafeBytes { left in right.bytes.withUnsafeBytes { left.compare($0) < 0 } }
    }
}

extension UnsafeRawBufferPointer {
    /// Returns a negative number when these bytes sort before the others, 0 when they are equal.
    ///
    /// Large sets of paths are sorted, and the generic comparison takes several times as long.
    package func compare(_ other: UnsafeRawBufferPointer) -> Int {
        if let left = baseAddress, let right = other.baseAddress {
            let order = memcmp(left, right, Swift.min(count, other.count))
            if order != 0 { return Int(order) }
        }
        return count - other.count
    }
}

extension UInt8 {
    /// `/`.
    public static var slash: UInt8 { UInt8(ascii: "/") }
    /// `.`.
    public static var dot: UInt8 { UInt8(ascii: ".") }
}

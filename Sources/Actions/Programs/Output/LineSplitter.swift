import Glibc

/// Splits a stream of bytes into lines, and long lines into pieces.
package struct LineSplitter {
    private let limit: Int
    private let keepsReturns: Bool
    private var rest: [UInt8] = []

    /// - Parameters:
    ///   - limit: The maximum size of a line.
    ///   - keepsReturns: Whether a carriage return at the end of a line stays; otherwise it belongs to the newline.
    package init(limit: Int = 8 << 10, keepsReturns: Bool = false) {
        self.limit = limit
        self.keepsReturns = keepsReturns
    }

    /// Adds bytes, and returns the lines that they complete.
    package mutating func add(_ bytes: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
        var lines: [ArraySlice<UInt8>] = []
        var bytes = bytes
        while !bytes.isEmpty {
            let capacity = bytes.prefix(limit - rest.count)
            if let newline = capacity.firstIndex(ofByte: 0x0A) {
                rest += bytes[..<newline]
                bytes = bytes[(newline + 1)...]
            } else {
                rest += capacity
                bytes = bytes.dropFirst(capacity.count)
                guard rest.count == limit else { break }
                // A newline right after a full piece terminates that piece; it is not an empty line.
                if bytes.first == UInt8(ascii: "\n") { bytes = bytes.dropFirst() }
            }
            lines.append(takeLine())
        }
        return lines
    }

    /// Returns the bytes after the last newline; nil when there are none.
    package mutating func finish() -> ArraySlice<UInt8>? { rest.isEmpty ? nil : takeLine() }

    private mutating func takeLine() -> ArraySlice<UInt8> {
        defer { rest = [] }
        return rest.last == UInt8(ascii: "\r") && !keepsReturns ? rest.dropLast() : rest[...]
    }
}

extension ArraySlice<UInt8> {
    /// Returns the index of the first such byte; much faster than a search in Swift in builds without optimization.
    package func firstIndex(ofByte byte: UInt8) -> Int? {
        withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress, let found = memchr(base, Int32(byte), bytes.count) else { return nil }
            return startIndex + (UnsafeRawPointer(found) - base)
        }
    }
}

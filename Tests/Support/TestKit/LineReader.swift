import Glibc
package import System

/// Reads the lines of a file while a program appends to it.
package struct LineReader: ~Copyable {
    private let descriptor: Int32
    private var rest: [UInt8] = []
    package private(set) var count = 0

    /// Opens an existing file.
    ///
    /// Returns nil if it can't be opened.
    package init?(_ path: PathBytes) {
        descriptor = path.withCString { open($0, O_RDONLY | O_CLOEXEC) }
        guard descriptor >= 0 else { return nil }
    }

    deinit { close(descriptor) }

    /// Calls the body with each complete line since the last call and its number, which starts at 1.
    package mutating func take(_ body: (ArraySlice<UInt8>, Int) throws -> Void) rethrows {
        var buffer = [UInt8](repeating: 0, count: 262_144)
        while true {
            let length = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
            guard length > 0 else { return }
            rest += buffer[..<length]
            var start = rest.startIndex
            while let end = rest[start...].firstIndex(of: UInt8(ascii: "\n")) {
                count += 1
                try body(rest[start..<end], count)
                start = end + 1
            }
            rest.removeSubrange(..<start)
        }
    }
}

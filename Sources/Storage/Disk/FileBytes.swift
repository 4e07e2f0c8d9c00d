import Glibc
import System

/// Reads bytes of a file that may be written concurrently.
enum FileBytes {
    /// Reads from an open file.
    ///
    /// - Parameters:
    ///   - descriptor: The file.
    ///   - count: The number of bytes.
    ///   - place: The offset of the first byte.
    ///   - path: The path for errors.
    /// - Returns: The bytes, fewer at the end of the file.
    /// - Throws: `unreadable`, with the path.
    static func read(
        _ descriptor: Int32, _ count: Int, at place: Int, of path: PathBytes
    ) throws(JournalError) -> [UInt8] {
        var failure: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                let start = buffer.baseAddress.map { $0 + filled }
                let taken = pread(descriptor, start, count - filled, off_t(place + filled))
                if taken < 0, errno == EINTR { continue }
                if taken < 0 { failure = errno }
                guard taken > 0 else { return }
                filled += taken
            }
        }
        if failure != 0 { throw .unreadable(path, errno: failure) }
        return bytes
    }
}

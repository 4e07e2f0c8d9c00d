import Digests
import Glibc
package import Rules
package import System

/// The checksum of a file's content.
package enum ContentDigest {
    package enum Reading: Sendable, Hashable {
        /// SHA-256 of all bytes.
        case digest([UInt8])
        /// The path is not a regular file.
        case notRegular
        case unreadable(errno: Int32)
        /// The limit was reached before the end of the file, with this outcome.
        case ended(Outcome)
    }

    private static let blockSize = 1 << 18

    /// Reads a file below its watched root from start to end, in blocks.
    ///
    /// Blocks for as long as the disk does. The caller checks whether the file was written to in the meantime.
    package static func sha256(of path: PathBytes, below root: PathBytes, within limit: WorkLimit) -> Reading {
        let descriptor = DiskProbe.openForReading(path, below: root)
        guard descriptor >= 0 else { return descriptor == -ELOOP ? .notRegular : .unreadable(errno: -descriptor) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return .unreadable(errno: errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { return .notRegular }
        guard let digest = Digest(.sha256) else { return .unreadable(errno: ENOTSUP) }
        let block = UnsafeMutableRawBufferPointer.allocate(byteCount: blockSize, alignment: 1)
        defer { block.deallocate() }
        while true {
            if let outcome = limit.outcome("reading of the content") { return .ended(outcome) }
            let count = read(descriptor, block.baseAddress, block.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return .unreadable(errno: errno) }
            if count == 0 { break }
            digest.add(UnsafeRawBufferPointer(rebasing: block[..<count]))
        }
        return .digest(digest.finish())
    }
}

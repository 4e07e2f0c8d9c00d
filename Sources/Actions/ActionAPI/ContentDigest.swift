package import Digests
import Glibc
package import Rules
package import System

/// The checksum of a file's content.
package enum ContentDigest {
    package enum Reading: Sendable, Hashable {
        /// The digest of all bytes.
        case digest([UInt8])
        /// The path is not a regular file.
        case notRegular
        case unreadable(errno: Int32)
        /// The limit was reached before the end of the file, with this outcome.
        case ended(Outcome)
    }

    /// Reads a file below its watched root from start to end.
    ///
    /// Blocks for as long as the disk does. The caller checks whether the file was written to in the meantime.
    package static func sha256(of path: PathBytes, below root: PathBytes, within limit: WorkLimit) -> Reading {
        do throws(SystemError) {
            let file = try OpenFile(opened: DiskProbe.openForReading(path, below: root))
            guard try file.snapshot().type == .file else { return .notRegular }
            return reading(file, .sha256, "reading of the content", within: limit)
        } catch {
            return error.errno == ELOOP ? .notRegular : .unreadable(errno: error.errno)
        }
    }

    /// Reads an open file from its position to its end, in blocks.
    ///
    /// - Parameters:
    ///   - file: The file.
    ///   - algorithm: The algorithm.
    ///   - work: The name of the work, for the outcome at the limit.
    ///   - limit: The limit of the work.
    /// - Returns: The digest, or why there is none: `ENOTSUP` if libcrypto does not provide the algorithm.
    package static func reading(
        _ file: OpenFile, _ algorithm: Digest.Algorithm, _ work: String, within limit: WorkLimit
    ) -> Reading {
        guard let digest = Digest(algorithm) else { return .unreadable(errno: ENOTSUP) }
        let block = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)
        defer { block.deallocate() }
        while true {
            if let outcome = limit.outcome(work) { return .ended(outcome) }
            let count = read(file.descriptor, block.baseAddress, block.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return .unreadable(errno: errno) }
            if count == 0 { return .digest(digest.finish()) }
            digest.add(UnsafeRawBufferPointer(rebasing: block[..<count]))
        }
    }
}

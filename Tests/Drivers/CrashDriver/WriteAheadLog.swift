import Glibc
import System
import TestKit

/// The write-ahead log of a journal whose process was killed.
struct WriteAheadLog {
    private let path: PathBytes
    private let index: PathBytes
    /// The position of the last loss.
    ///
    /// Everything before it is on the disk until the log is restarted.
    private var last: (header: [UInt8], offset: Int)?

    init(of journal: PathBytes) {
        path = PathBytes(journal.bytes + Array("-wal".utf8))
        index = PathBytes(journal.bytes + Array("-shm".utf8))
    }

    /// Loses everything after a random byte, as a power failure can: the log is truncated, zeroed or overwritten.
    ///
    /// Frames that a checkpoint has copied into the database, or was about to copy, were
    /// flushed before and can't be lost: the database would become a mixture that no
    /// power failure leaves. SQLite's index of the log contains that position.
    ///
    /// - Returns: A description of the change; nil if there was nothing to lose.
    mutating func lose(_ random: inout SeededGenerator) -> String? {
        guard let content = TestFile.read(path), content.count > 32, let known = TestFile.read(index), known.count > 136
        else { return nil }
        let frames = number(known, 16)
        let pageSize = Int(known[14]) | Int(known[15]) << 8
        let frame = 24 + (pageSize == 1 ? 65_536 : pageSize)
        let flushed = max(number(known, 96), number(known, 128))
        let header = Array(content[..<32])
        let durable = last.flatMap { $0.header == header ? $0.offset : nil } ?? 0
        let first = max(32 + flushed * frame, durable)
        let end = min(content.count, 32 + frames * frame)
        guard first < end else { return nil }
        let offset = first + random.below(end - first)
        let file = self.path.withCString { open($0, O_WRONLY | O_CLOEXEC) }
        guard file >= 0 else { return nil }
        defer { close(file) }
        last = (header, offset)
        let change: String
        switch random.below(4) {
        case 0:
            var rest = [UInt8](repeating: 0, count: content.count - offset)
            if random.isOne(in: 2) {
                for byte in rest.indices { rest[byte] = UInt8(truncatingIfNeeded: random.next()) }
            }
            pwrite(file, rest, rest.count, off_t(offset))
            change = "overwritten"
        default:
            ftruncate(file, off_t(offset))
            change = "truncated"
        }
        return "\(change) at byte \(offset) of \(content.count), \(flushed) of \(frames) frames flushed"
    }

    private func number(_ bytes: [UInt8], _ offset: Int) -> Int {
        (0..<4).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) }
    }
}

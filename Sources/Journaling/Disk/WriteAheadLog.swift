/// The log that SQLite keeps beside a database: pages that were committed, and are yet to be moved into the file.
///
/// Its form is described in <https://sqlite.org/fileformat2.html#the_write_ahead_log>.
struct WriteAheadLog {
    static let headerSize = 32
    private static let frameHeaderSize = 24

    private let bytes: [UInt8]
    private let pageSize: Int
    private let isBigEndian: Bool

    /// Takes the bytes of a log; nil if they are none that says anything.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= Self.headerSize else { return nil }
        let magic = Self.number(bytes, 0)
        guard magic & ~1 == 0x377F_0682 else { return nil }
        self.bytes = bytes
        isBigEndian = magic & 1 == 1
        pageSize = Int(Self.number(bytes, 8))
        guard (512...65_536).contains(pageSize), pageSize.nonzeroBitCount == 1 else { return nil }
        guard checksum(of: 0..<24, after: (0, 0)) == (Self.number(bytes, 24), Self.number(bytes, 28)) else {
            return nil
        }
    }

    /// Puts the pages of all whole transactions in their places.
    func apply(to database: inout [UInt8]) {
        var committed: [UInt32: Int] = [:]
        var pages: UInt32?
        var open: [UInt32: Int] = [:]
        var sum = (Self.number(bytes, 24), Self.number(bytes, 28))
        var frame = Self.headerSize
        while frame + Self.frameHeaderSize + pageSize <= bytes.count {
            // What follows the last frame is left from an earlier round.
            guard bytes[(frame + 8)..<(frame + 16)].elementsEqual(bytes[16..<24]) else { break }
            let content = frame + Self.frameHeaderSize
            sum = checksum(of: frame..<(frame + 8), after: sum)
            sum = checksum(of: content..<(content + pageSize), after: sum)
            guard sum == (Self.number(bytes, frame + 16), Self.number(bytes, frame + 20)) else { break }
            open[Self.number(bytes, frame)] = content
            let size = Self.number(bytes, frame + 4)
            if size > 0 {
                committed.merge(open) { _, new in new }
                open = [:]
                pages = size
            }
            frame = content + pageSize
        }
        guard let pages else { return }
        let size = Int(pages) * pageSize
        if database.count > size { database.removeLast(database.count - size) }
        if database.count < size { database += [UInt8](repeating: 0, count: size - database.count) }
        for (page, content) in committed where page > 0 && page <= pages {
            let place = (Int(page) - 1) * pageSize
            database.replaceSubrange(place..<(place + pageSize), with: bytes[content..<(content + pageSize)])
        }
    }

    private func checksum(of range: Range<Int>, after sum: (UInt32, UInt32)) -> (UInt32, UInt32) {
        bytes.withUnsafeBytes {
            Self.checksum(UnsafeRawBufferPointer(rebasing: $0[range]), isBigEndian: isBigEndian, after: sum)
        }
    }

    /// The sums of pairs of words, each of which goes on with the one before.
    ///
    /// The bytes are a multiple of 8.
    static func checksum(
        _ bytes: UnsafeRawBufferPointer, isBigEndian: Bool, after sum: (UInt32, UInt32)
    ) -> (UInt32, UInt32) {
        var (first, second) = sum
        var index = 0
        while index < bytes.count {
            let one = bytes.loadUnaligned(fromByteOffset: index, as: UInt32.self)
            let other = bytes.loadUnaligned(fromByteOffset: index + 4, as: UInt32.self)
            first &+= (isBigEndian ? one.bigEndian : one.littleEndian) &+ second
            second &+= (isBigEndian ? other.bigEndian : other.littleEndian) &+ first
            index += 8
        }
        return (first, second)
    }

    private static func number(_ bytes: [UInt8], _ offset: Int) -> UInt32 {
        bytes[offset..<(offset + 4)].reduce(0) { $0 << 8 | UInt32($1) }
    }
}

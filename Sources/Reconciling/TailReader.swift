import FileEvents
import Glibc
import Settling

/// Reads what was added to a file that is followed.
enum TailReader {
    /// The text from the offset on, whole characters of it.
    ///
    /// An incomplete UTF-8 character at the end is left for the next time, unless
    /// there is nothing else: then the file is no UTF-8, and its bytes are told as
    /// they are. A file that can't be read, or is another one by now, has no text.
    static func read(
        _ place: DiskProbe.Place, _ snapshot: Snapshot, from offset: UInt64, limit: Int, isReset: Bool
    ) -> TailText {
        var text = TailText(offset: offset, bytes: [], isReset: isReset)
        let descriptor = place.openForReading()
        guard descriptor >= 0 else { return text }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, UInt64(status.st_ino) == snapshot.identity.inode,
            snapshot.size > offset
        else { return text }
        let wanted = Int(min(snapshot.size - offset, UInt64(limit)))
        var bytes = [UInt8](repeating: 0, count: wanted)
        var count = 0
        while count < wanted {
            let got = bytes.withUnsafeMutableBytes { buffer in
                pread(descriptor, buffer.baseAddress?.advanced(by: count), wanted - count, off_t(offset) + off_t(count))
            }
            if got < 0, errno == EINTR { continue }
            guard got > 0 else { break }
            count += got
        }
        bytes.removeLast(wanted - count)
        let whole = wholeCharacters(bytes)
        text.bytes = whole == 0 ? bytes : Array(bytes[..<whole])
        // Fewer than four bytes may be the beginning of a character; wait for the rest.
        if whole == 0, bytes.count < 4 { text.bytes = [] }
        text.remaining = snapshot.size - offset - UInt64(text.bytes.count)
        return text
    }

    /// How many of the bytes come before a UTF-8 character that is cut off at the end.
    static func wholeCharacters(_ bytes: [UInt8]) -> Int {
        for back in 1...3 where back <= bytes.count {
            let byte = bytes[bytes.count - back]
            if byte & 0b1100_0000 == 0b1000_0000 { continue }
            let length =
                switch byte {
                case 0b1100_0000...0b1101_1111: 2
                case 0b1110_0000...0b1110_1111: 3
                case 0b1111_0000...0b1111_0111: 4
                default: 1
                }
            return length > back ? bytes.count - back : bytes.count
        }
        return bytes.count
    }
}

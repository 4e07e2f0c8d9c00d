import FileEvents
import System

/// The unfinished line at the end of a followed file.
struct UnfinishedLine {
    /// The event that delivers it if the file changes otherwise than by more text.
    let event: FileEvent
    /// The time at which it is delivered without an end.
    let deadline: ContinuousClock.Instant

    var text: TailText { event.tail ?? TailText(offset: 0, bytes: []) }

    init(_ event: FileEvent, _ line: TailText, until deadline: ContinuousClock.Instant) {
        var event = event
        event.tail = line
        event.snapshot.delivered = line.offset + UInt64(line.bytes.count)
        (self.event, self.deadline) = (event, deadline)
    }
}

extension TailText {
    /// Removes and returns the text after the last line.
    ///
    /// Nothing is removed of a line that is longer than the limit.
    mutating func removeUnfinishedLine(limit: Int) -> TailText {
        let end = bytes.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
        // A character may have been left at the limit.
        let isLimit = end == 0 && (bytes.count >= limit || remaining > 0 && bytes.count > limit - 4)
        let start = isLimit ? bytes.count : end
        var line = self
        line.bytes.removeFirst(start)
        line.offset += UInt64(start)
        if start > 0 { line.isReset = false }
        bytes.removeLast(line.bytes.count)
        remaining += UInt64(line.bytes.count)
        return line
    }
}

/// Reads the text that was added to a followed file.
enum TailReader {
    /// Returns the text from the offset on, in whole characters.
    ///
    /// An incomplete UTF-8 character at the end is left for the next read, unless there is nothing else: then the
    /// file is not UTF-8, and its bytes are reported unchanged. A file that cannot be read, or has been replaced, has
    /// no text.
    static func read(
        _ location: DiskProbe.Location, in fileSystem: any FileSystem, _ snapshot: Snapshot, from offset: UInt64,
        limit: Int, isReset: Bool
    ) -> TailText {
        var text = TailText(offset: offset, bytes: [], isReset: isReset)
        guard snapshot.size > offset else { return text }
        let bytes = fileSystem.read(
            location, inode: snapshot.identity.inode, from: offset,
            count: Int(min(snapshot.size - offset, UInt64(limit))))
        guard !bytes.isEmpty else { return text }
        let whole = wholeCharacters(bytes)
        text.bytes = whole == 0 ? bytes : Array(bytes[..<whole])
        // Fewer than four bytes may be the start of a character; wait for the rest.
        if whole == 0, bytes.count < 4 { text.bytes = [] }
        text.remaining = snapshot.size - offset - UInt64(text.bytes.count)
        return text
    }

    /// Returns the number of bytes before an incomplete UTF-8 character at the end.
    static func wholeCharacters(_ bytes: [UInt8]) -> Int {
        for back in 1...3 where back <= bytes.count {
            // The number of ones at the start of a byte is the length of its character, or 1 if it continues one.
            let ones = (~bytes[bytes.count - back]).leadingZeroBitCount
            if ones != 1 { return (2...4).contains(ones) && ones > back ? bytes.count - back : bytes.count }
        }
        return bytes.count
    }
}

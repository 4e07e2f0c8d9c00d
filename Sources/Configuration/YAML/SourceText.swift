package import Rules
import System

/// The text of a YAML file: valid UTF-8, with line and column positions.
///
/// Offsets are in bytes. Lines and columns count from 1, columns in Unicode scalars. A line ends at LF, CR LF or CR,
/// as in editors.
package struct SourceText: Sendable {
    /// The file as the user named it.
    package let file: String
    /// The content in UTF-8, without a byte order mark.
    package let bytes: [UInt8]
    /// The offset of each line.
    private let lineStarts: [Int]
    /// The offset of every 32nd character; empty for ASCII text, in which bytes and characters are the same.
    private let checkpoints: [Int]

    private static let charactersPerCheckpoint = 32

    package init(file: String, bytes: [UInt8]) {
        (self.file, self.bytes) = (file, bytes)
        var lineStarts = [0]
        var checkpoints = [0]
        var isASCII = true
        var character = 0
        bytes.withUnsafeBufferPointer { bytes in
            for (offset, byte) in bytes.enumerated() {
                let isBeforeLineFeed = offset + 1 < bytes.count && bytes[offset + 1] == Self.lineFeed
                if byte == Self.lineFeed || (byte == Self.carriageReturn && !isBeforeLineFeed) {
                    lineStarts.append(offset + 1)
                }
                guard !UTF8.isContinuation(byte) else { continue }
                if byte >= 0x80 { isASCII = false }
                if character > 0, character % Self.charactersPerCheckpoint == 0 { checkpoints.append(offset) }
                character += 1
            }
        }
        self.lineStarts = lineStarts
        self.checkpoints = isASCII ? [] : checkpoints
    }

    /// Returns the same text with asterisks in the given ranges; line breaks are preserved.
    func hiding(_ ranges: [Range<Int>]) -> SourceText {
        guard !ranges.isEmpty else { return self }
        var hidden = bytes
        for range in ranges {
            for offset in range.clamped(to: hidden.indices) where hidden[offset] > UInt8(ascii: " ") {
                hidden[offset] = UInt8(ascii: "*")
            }
        }
        return SourceText(file: file, bytes: hidden)
    }

    /// Returns the position of an offset; the end of the text is also valid.
    package func location(at offset: Int) -> SourcePosition {
        let offset = min(max(offset, 0), bytes.count)
        let line = lineIndex(at: offset)
        return SourcePosition(
            file: file, line: line + 1, column: character(at: offset) - character(at: lineStarts[line]) + 1)
    }

    /// Returns the range of the line that contains the offset, without its line break.
    package func lineRange(at offset: Int) -> Range<Int> {
        let line = lineIndex(at: min(max(offset, 0), bytes.count))
        let start = lineStarts[line]
        var end = line + 1 < lineStarts.count ? lineStarts[line + 1] : bytes.count
        while end > start, bytes[end - 1] == Self.lineFeed || bytes[end - 1] == Self.carriageReturn { end -= 1 }
        return start..<end
    }

    /// Returns the offset of a character, counted from 0.
    package func offset(ofCharacter character: Int) -> Int {
        guard !checkpoints.isEmpty else { return min(character, bytes.count) }
        let checkpoint = min(character / Self.charactersPerCheckpoint, checkpoints.count - 1)
        var offset = checkpoints[checkpoint]
        var missing = character - checkpoint * Self.charactersPerCheckpoint
        while missing > 0, offset < bytes.count {
            offset = self.offset(after: offset)
            missing -= 1
        }
        return offset
    }

    /// Returns the number of characters before an offset.
    package func character(at offset: Int) -> Int {
        guard !checkpoints.isEmpty else { return offset }
        let checkpoint = checkpoints.lastIndex(notAbove: offset)
        let rest = bytes[checkpoints[checkpoint]..<offset]
        return checkpoint * Self.charactersPerCheckpoint + rest.count { !UTF8.isContinuation($0) }
    }

    /// Returns the offset of the next character.
    package func offset(after offset: Int) -> Int {
        var next = offset + 1
        while next < bytes.count, UTF8.isContinuation(bytes[next]) { next += 1 }
        return min(next, bytes.count)
    }

    /// Returns the offset of the previous character.
    package func offset(before offset: Int) -> Int {
        var previous = offset - 1
        while previous > 0, UTF8.isContinuation(bytes[previous]) { previous -= 1 }
        return max(previous, 0)
    }

    /// Returns the text of a range.
    package func text(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }

    private func lineIndex(at offset: Int) -> Int { lineStarts.lastIndex(notAbove: offset) }

    private static let lineFeed = UInt8(ascii: "\n")
    private static let carriageReturn = UInt8(ascii: "\r")
}

extension [Int] {
    /// Returns the last index of a sorted array whose element is not above the limit; 0 if all are.
    func lastIndex(notAbove limit: Int) -> Int {
        Swift.max(0, indices.bisected { self[$0] > limit } - 1)
    }
}

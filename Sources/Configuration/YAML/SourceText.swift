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
    /// The offset of each character; empty for ASCII text, in which bytes and characters are the same.
    private let characters: [Int]

    package init(file: String, bytes: [UInt8]) {
        (self.file, self.bytes) = (file, bytes)
        let ends = bytes.indices.filter { offset in
            let isBeforeLineFeed = offset + 1 < bytes.count && bytes[offset + 1] == UInt8(ascii: "\n")
            return bytes[offset] == UInt8(ascii: "\n") || bytes[offset] == UInt8(ascii: "\r") && !isBeforeLineFeed
        }
        lineStarts = [0] + ends.map { $0 + 1 }
        let isASCII = bytes.allSatisfy { $0 < 0x80 }
        characters = isASCII ? [] : bytes.indices.filter { !UTF8.isContinuation(bytes[$0]) }
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
        while end > start, "\r\n".utf8.contains(bytes[end - 1]) { end -= 1 }
        return start..<end
    }

    /// Returns the offset of a character, counted from 0.
    package func offset(ofCharacter character: Int) -> Int {
        if characters.isEmpty { return min(character, bytes.count) }
        return character < characters.count ? characters[character] : bytes.count
    }

    /// Returns the number of characters before an offset.
    package func character(at offset: Int) -> Int {
        characters.isEmpty ? offset : characters.indices.bisected { characters[$0] >= offset }
    }

    /// Returns the text of a range.
    package func text(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }

    private func lineIndex(at offset: Int) -> Int { lineStarts.lastIndex(notAbove: offset) }
}

extension [Int] {
    /// Returns the last index of a sorted array whose element is not above the limit; 0 if all are.
    func lastIndex(notAbove limit: Int) -> Int {
        Swift.max(0, indices.bisected { self[$0] > limit } - 1)
    }
}

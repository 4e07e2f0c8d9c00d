package import System

/// Names with a number, for files whose own name is taken.
package enum NumberedName {
    /// The maximum length of a name in bytes, on nearly every file system.
    private static let longest = 255
    /// The number of names to try: the plain one, and those with a number.
    package static let most = 10_000

    /// Returns the name with a number before its extension: `a (1).txt`; 0 is the plain name.
    ///
    /// A name that would be too long loses the end of its stem or, if that is not enough, its own end.
    package static func numbered(_ name: PathBytes, _ number: Int) -> PathBytes {
        guard number > 0 else { return name }
        let name = name.bytes[...]
        let mark = Array(" (\(number))".utf8)
        var dot = name.lastIndex(of: .dot).flatMap { $0 > name.startIndex ? $0 : nil } ?? name.endIndex
        let excess = name.count + mark.count - longest
        if excess >= dot - name.startIndex { dot = name.endIndex }
        var stem = name[..<dot]
        if excess > 0 {
            stem = stem.dropLast(excess)
            stem.removeSplitCharacter(before: name[stem.endIndex...].first)
        }
        return PathBytes(Array(stem) + mark + Array(name[dot...]))
    }
}

extension RangeReplaceableCollection<UInt8> where Self: BidirectionalCollection {
    /// Removes the first bytes of a UTF-8 character at the end, if the next byte continues it.
    package mutating func removeSplitCharacter(before next: UInt8?) {
        guard let next, next & 0xC0 == 0x80 else { return }
        while let last, last & 0xC0 == 0x80 { removeLast() }
        if let last, last >= 0xC0 { removeLast() }
    }
}

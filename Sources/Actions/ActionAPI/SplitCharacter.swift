extension RangeReplaceableCollection<UInt8> where Self: BidirectionalCollection {
    /// Removes the first bytes of a UTF-8 character at the end, if the next byte continues it.
    package mutating func removeSplitCharacter(before next: UInt8?) {
        guard let next, next & 0xC0 == 0x80 else { return }
        while let last, last & 0xC0 == 0x80 { removeLast() }
        if let last, last >= 0xC0 { removeLast() }
    }
}

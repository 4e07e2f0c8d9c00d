/// The start and the end of a long output, 64 KiB each.
package struct HeadAndTail: Sendable, Hashable {
    private static let limit = 64 << 10

    private var head: [UInt8] = []
    /// The latest bytes, up to twice the limit, so that old bytes are dropped in large pieces.
    private var tail: [UInt8] = []
    /// The number of all bytes that were added.
    package private(set) var count = 0

    package init() {}

    package mutating func append(_ bytes: ArraySlice<UInt8>) {
        count += bytes.count
        let capacity = Self.limit - head.count
        head += bytes.prefix(capacity)
        tail += bytes.dropFirst(capacity)
        if tail.count > 2 * Self.limit { tail.removeFirst(tail.count - Self.limit) }
    }

    /// The output as a string, with a line in the middle that reports how much is missing; invalid UTF-8 is replaced.
    package var text: String {
        let end = tail.suffix(Self.limit)
        let missing = count - head.count - end.count
        guard missing > 0 else { return String(decoding: head + end, as: UTF8.self) }
        return String(decoding: head, as: UTF8.self) + "\n[\(missing) bytes left out]\n"
            + String(decoding: end, as: UTF8.self)
    }
}

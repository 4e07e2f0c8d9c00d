import Programs

/// Splits the output of a serving plugin into lines, and stores no more of a line than a response may have.
package struct ServeLines: Sendable {
    package enum Piece: Sendable, Hashable {
        case line([UInt8])
        /// A line that is longer than a response may be; its first bytes.
        case tooLong([UInt8])
    }

    private static let limit = 1 << 20

    private var rest: [UInt8] = []
    private var isOver = false

    package init() {}

    /// Adds bytes, and returns the lines that they complete; nothing follows a line that is too long.
    package mutating func add(_ bytes: ArraySlice<UInt8>) -> [Piece] {
        guard !isOver else { return [] }
        var pieces: [Piece] = []
        var bytes = bytes
        while !bytes.isEmpty {
            let end = bytes.firstIndex(ofByte: 0x0A)
            let part = bytes[..<(end ?? bytes.endIndex)]
            guard rest.count + part.count <= Self.limit else {
                pieces.append(.tooLong(Array((rest + part.prefix(4096)).prefix(4096))))
                rest = []
                isOver = true
                return pieces
            }
            rest += part
            guard let end else { break }
            pieces.append(.line(rest))
            rest = []
            bytes = bytes[(end + 1)...]
        }
        return pieces
    }
}

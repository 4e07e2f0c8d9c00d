/// Cuts what a serving plugin prints into lines, and keeps no more of one than a response may have.
package struct ServeLines: Sendable {
    package enum Piece: Sendable, Hashable {
        case line([UInt8])
        /// A line that is longer than any response; its first bytes.
        case tooLong([UInt8])
    }

    private let limit: Int
    private var rest: [UInt8] = []
    private var isOver = false

    package init(limit: Int = 1 << 20) { self.limit = limit }

    /// Adds bytes, and gives the lines that they complete; nothing comes behind a line that is too long.
    package mutating func add(_ bytes: ArraySlice<UInt8>) -> [Piece] {
        guard !isOver else { return [] }
        var pieces: [Piece] = []
        var bytes = bytes
        while !bytes.isEmpty {
            let end = bytes.firstNewline
            let part = bytes[..<(end ?? bytes.endIndex)]
            guard rest.count + part.count <= limit else {
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

/// A `${…}` in a string.
struct PlaceholderToken {
    /// The range of bytes from `$` to `}`.
    var range: Range<Int>
    /// The text between the braces.
    var word: String
}

/// The placeholders in a string, without their values.
struct PlaceholderScan {
    /// The tokens in order; `$${` is not a token.
    private(set) var tokens: [PlaceholderToken] = []
    /// The offset of a `${` without `}`, which ends the scan.
    private(set) var unclosed: Int?

    init(_ text: String) {
        let bytes = Array(text.utf8)
        var rest = bytes[...]
        while let start = rest.firstIndex(of: UInt8(ascii: "$")) {
            rest = rest[start...]
            if rest.starts(with: "$${".utf8) {
                rest = rest.dropFirst(3)
            } else if !rest.starts(with: "${".utf8) {
                rest = rest.dropFirst()
            } else if let end = rest.firstIndex(of: UInt8(ascii: "}")) {
                let word = String(decoding: bytes[(start + 2)..<end], as: UTF8.self)
                tokens.append(PlaceholderToken(range: start..<(end + 1), word: word))
                rest = rest[(end + 1)...]
            } else {
                unclosed = start
                return
            }
        }
    }
}

/// A `${…}` in a string.
package struct PlaceholderToken: Sendable {
    /// The range of bytes from `$` to `}`.
    package var range: Range<Int>
    /// The text between the braces.
    package var word: String
    /// The name of the environment variable in `env:NAME`; nil for another word.
    package var variable: String? { word.hasPrefix("env:") ? String(word.dropFirst(4)) : nil }
}

/// The placeholders in a string, without their values.
package struct PlaceholderScan: Sendable {
    /// The string in UTF-8.
    let bytes: [UInt8]
    /// The tokens in order; `$${` is not a token.
    package private(set) var tokens: [PlaceholderToken] = []
    /// The offset of a `${` without `}`, which ends the scan.
    package private(set) var unclosed: Int?

    package init(_ text: String) {
        bytes = Array(text.utf8)
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

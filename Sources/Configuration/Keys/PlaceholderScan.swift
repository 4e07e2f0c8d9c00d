/// A `${…}` in a string.
struct PlaceholderToken {
    /// The range of bytes from `$` to `}`.
    var range: Range<Int>
    /// The text between the braces.
    var word: String
}

/// Finds placeholders in strings without expanding them.
enum PlaceholderScan {
    /// Returns the tokens of a string in order; `$${` and an unclosed `${` are not tokens.
    static func tokens(in text: String) -> [PlaceholderToken] {
        let bytes = Array(text.utf8)
        var tokens: [PlaceholderToken] = []
        var index = 0
        while index + 1 < bytes.count {
            if bytes[index...].starts(with: "$${".utf8) {
                index += 3
            } else if bytes[index] == UInt8(ascii: "$"), bytes[index + 1] == UInt8(ascii: "{") {
                guard let end = bytes[index...].firstIndex(of: UInt8(ascii: "}")) else { break }
                tokens.append(
                    PlaceholderToken(
                        range: index..<(end + 1), word: String(decoding: bytes[(index + 2)..<end], as: UTF8.self)))
                index = end + 1
            } else {
                index += 1
            }
        }
        return tokens
    }
}
